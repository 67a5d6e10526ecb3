/* What kernels take is measured once, kept for this machine, and told for any number of rows. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/memory/gauge_priv.h"
#include "tests/support/cpu_backend.h"
#include "tests/support/scratch.h"

TCase *tcase_memory_gauge(void);

static const char *dir;
static struct cpu_backend cpu;

#define Q8_0 ((uint64_t)1 << FORMAT_q8_0)

static const struct gauge_mixture mixture = {.formats = {FORMAT_q8_0, FORMAT_q8_0, FORMAT_q4_0},
                                             .width = 256,
                                             .ff = 512,
                                             .n_experts = 16,
                                             .n_used = 4};

static struct gauge_wants wants(uint64_t formats, enum format_id cache)
{
    return (struct gauge_wants){
        .formats = formats, .cache = cache, .mixtures = &mixture, .n_mixtures = 1};
}

static bool lacks(const struct gauge *g, uint64_t formats, enum format_id cache)
{
    struct gauge_wants w = wants(formats, cache);

    return gauge_lacks(g, &w);
}

static void set_up(void)
{
    dir = scratch_make();
    cpu = cpu_backend_open(1, NULL);
}

static void tear_down(void)
{
    cpu_backend_close(&cpu);
    ck_assert_int_eq(scratch_remove(), 0);
}

static struct gauge measured(void)
{
    struct gauge_wants w = wants(Q8_0, FORMAT_f16);
    struct gauge g;
    struct err err = {0};

    gauge_open(&g, dir, cpu.ops, cpu.be);
    ck_assert_msg(gauge_measure(&g, &w, dir, cpu.ops, cpu.be, &err) == 0, "%s", err.text);
    return g;
}

static char *kept_text(void)
{
    struct str text = {0};
    char *path = xasprintf("%s/kernels.json", dir), *copy;

    ck_assert_int_ge(file_read_all(path, 1 << 20, &text, NULL), 0);
    copy = xstrdup(str_text(&text));
    str_clear(&text);
    free(path);
    return copy;
}

static void put_back(const char *text)
{
    char *path = xasprintf("%s/kernels.json", dir);

    ck_assert_int_ge(file_replace(path, text, strlen(text), 0600, NULL), 0);
    free(path);
}

/* Puts other words in the place of some of the kept file. */
static void replace(const char *from, const char *to)
{
    char *text = kept_text(), *at = strstr(text, from);
    struct str out = {0};

    ck_assert_ptr_nonnull(at);
    str_add(&out, text, (size_t)(at - text));
    str_adds(&out, to);
    str_adds(&out, at + strlen(from));
    put_back(str_text(&out));
    str_clear(&out);
    free(text);
}

static bool is_known(void)
{
    struct gauge g;

    gauge_open(&g, dir, cpu.ops, cpu.be);
    return !lacks(&g, Q8_0, FORMAT_f16);
}

START_TEST(what_is_measured_is_known_and_kept)
{
    struct gauge g = measured(), kept;

    ck_assert(!lacks(&g, Q8_0, FORMAT_f16));
    ck_assert(lacks(&g, Q8_0 | (uint64_t)1 << FORMAT_q4_k, FORMAT_f16));
    ck_assert(lacks(&g, Q8_0, FORMAT_q8_0));
    ck_assert_double_gt(gauge_ram_rate(&g), 1e6);
    gauge_open(&kept, dir, cpu.ops, cpu.be);
    ck_assert(!lacks(&kept, Q8_0, FORMAT_f16));
    for (int p = 0; p < GAUGE_POINTS; p++)
        ck_assert_double_eq_tol(kept.seconds[FORMAT_q8_0][p], g.seconds[FORMAT_q8_0][p], 1e-15);
    ck_assert_double_eq_tol(kept.row_byte_s, g.row_byte_s, 1e-15);
    for (double rows = 1; rows < 100; rows *= 3) {
        double s = gauge_expert_seconds(&g, &mixture, rows);

        ck_assert_double_gt(s, 0);
        ck_assert_double_eq_tol(gauge_expert_seconds(&kept, &mixture, rows), s, 1e-12);
    }
    ck_assert_double_eq(g.experts[0].rows[GAUGE_POINTS - 1],
                        128); /* there was room for all points */
}
END_TEST

START_TEST(figures_of_another_machine_of_yesterday_or_of_no_sense_are_measured_again)
{
    struct gauge g = measured();
    char *machine = xasprintf("\"machine\":\"%s", g.machine), *whole = kept_text();
    const char *const odd[][2] = {
        {machine, "\"machine\":\"Another "},
        {"\"at\":1", "\"at\":0"},
        {"\"at\":1", "\"at\":9"},
        {"\"q8_0\":[", "\"q8_0\":[-"},
        {"\"used\":4", "\"used\":17"},
        {"\"rows\":[1", "\"rows\":[9999"},
    };

    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        put_back(whole);
        ck_assert_msg(is_known(), "before %s", odd[i][1]);
        replace(odd[i][0], odd[i][1]);
        ck_assert_msg(!is_known(), "%s", odd[i][1]);
    }
    measured();
    ck_assert(is_known());
    free(whole);
    free(machine);
}
END_TEST

START_TEST(without_a_state_folder_nothing_is_kept)
{
    struct gauge_wants w = wants(Q8_0, FORMAT_f16);
    struct gauge g;
    char *path = xasprintf("%s/kernels.json", dir);

    gauge_open(&g, NULL, cpu.ops, cpu.be);
    ck_assert_int_eq(gauge_measure(&g, &w, NULL, cpu.ops, cpu.be, NULL), 0);
    ck_assert(!lacks(&g, Q8_0, FORMAT_f16));
    ck_assert_int_lt(file_read_all(path, 100, &(struct str){0}, NULL), 0);
    free(path);
}
END_TEST

START_TEST(between_the_points_time_grows_evenly_and_past_the_last_with_the_rows)
{
    struct gauge g = {.op_s = 1e-6, .known[FORMAT_q8_0] = true};

    g.seconds[FORMAT_q8_0][0] = 1;
    g.seconds[FORMAT_q8_0][1] = 2;
    g.seconds[FORMAT_q8_0][2] = 4;
    g.seconds[FORMAT_q8_0][3] = 16;
    ck_assert_double_eq(gauge_seconds(&g, FORMAT_q8_0, 3, 1), 3);
    ck_assert_double_eq(gauge_seconds(&g, FORMAT_q8_0, 1, 8), 2);
    ck_assert_double_eq(gauge_seconds(&g, FORMAT_q8_0, 1, 20), 3);
    ck_assert_double_eq(gauge_seconds(&g, FORMAT_q8_0, 1, 256), 16);
    ck_assert_double_eq(gauge_seconds(&g, FORMAT_q8_0, 1, 512), 32);
    ck_assert_double_eq(gauge_seconds(&g, FORMAT_q4_k, 1, 1), 0);
    ck_assert_double_eq(gauge_ram_rate(&g), 1);
}
END_TEST

START_TEST(an_expert_takes_what_lies_between_the_points_and_only_of_its_own_kind)
{
    struct gauge g = {.n_mixtures = 1,
                      .experts[0] = {.mixture = mixture,
                                     .rows = {1, 8, 32, 32}, /* no room for more than 32 */
                                     .seconds = {1, 8, 20, 20}}};
    struct gauge_mixture other = mixture;

    ck_assert_double_eq(gauge_expert_seconds(&g, &mixture, 1), 1);
    ck_assert_double_eq(gauge_expert_seconds(&g, &mixture, 20), 14);
    ck_assert_double_eq(gauge_expert_seconds(&g, &mixture, 64), 40);
    other.ff = 256;
    ck_assert_double_eq(gauge_expert_seconds(&g, &other, 1), 0);
}
END_TEST

START_TEST(experts_too_large_for_the_bench_are_measured_by_a_part_of_them)
{
    struct gauge_mixture large = mixture;
    struct gauge_wants w = {.cache = FORMAT_f16, .mixtures = &large, .n_mixtures = 1};
    struct gauge g;
    double small_s, large_s;

    large.width = 2048;
    large.ff = 16384; /* 89 MB each */
    large.n_experts = large.n_used = 2;
    gauge_open(&g, NULL, cpu.ops, cpu.be);
    ck_assert_int_eq(gauge_measure(&g, &w, NULL, cpu.ops, cpu.be, NULL), 0);
    large_s = gauge_expert_seconds(&g, &large, 1);
    large.ff = 1024;
    ck_assert_int_eq(gauge_measure(&g, &w, NULL, cpu.ops, cpu.be, NULL), 0);
    small_s = gauge_expert_seconds(&g, &large, 1);
    ck_assert_double_gt(small_s, 0);
    ck_assert_double_gt(large_s, small_s);
}
END_TEST

START_TEST(a_turn_that_was_stalled_says_nothing)
{
    struct gauge turns[GAUGE_TURNS], g;
    static const double took[GAUGE_TURNS] = {2, 1, 300};

    memset(turns, 0, sizeof turns);
    for (int t = 0; t < GAUGE_TURNS; t++) {
        int late = (t + 1) % GAUGE_TURNS; /* each figure has its stall in another turn */

        turns[t].known[FORMAT_q8_0] = turns[t].attends[FORMAT_f16] = true;
        turns[t].n_mixtures = 1;
        turns[t].experts[0].mixture = mixture;
        for (int p = 0; p < GAUGE_POINTS; p++) {
            turns[t].seconds[FORMAT_q8_0][p] = took[(t + p) % GAUGE_TURNS];
            turns[t].experts[0].rows[p] = p + 1;
            turns[t].experts[0].seconds[p] = took[t];
        }
        turns[t].attention[FORMAT_f16][0] = turns[t].op_s = took[late];
        turns[t].attention[FORMAT_f16][1] = turns[t].row_byte_s = took[t];
    }
    gauge_settle(&g, turns);
    for (double rows = 1; rows <= 256; rows *= 2)
        ck_assert_double_eq(gauge_seconds(&g, FORMAT_q8_0, 1, rows), 2);
    ck_assert_double_eq(gauge_expert_seconds(&g, &mixture, 3), 2);
    ck_assert_double_eq(gauge_attention_seconds(&g, FORMAT_f16, 1, 2), 4);
    ck_assert_double_eq(g.op_s, 2);
    ck_assert_double_eq(g.row_byte_s, 2);
}
END_TEST

START_TEST(attention_takes_a_share_for_every_query)
{
    struct gauge g = {.attends[FORMAT_f16] = true, .attention[FORMAT_f16] = {2, 0.5}};

    ck_assert_double_eq(gauge_attention_seconds(&g, FORMAT_f16, 10, 1), 20);
    ck_assert_double_eq(gauge_attention_seconds(&g, FORMAT_f16, 10, 5), 40);
    ck_assert_double_eq(gauge_attention_seconds(&g, FORMAT_q8_0, 10, 5), 0);
}
END_TEST

TCase *tcase_memory_gauge(void)
{
    TCase *tc = tcase_create("gauge");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_is_measured_is_known_and_kept);
    tcase_add_test(tc, figures_of_another_machine_of_yesterday_or_of_no_sense_are_measured_again);
    tcase_add_test(tc, without_a_state_folder_nothing_is_kept);
    tcase_add_test(tc, between_the_points_time_grows_evenly_and_past_the_last_with_the_rows);
    tcase_add_test(tc, an_expert_takes_what_lies_between_the_points_and_only_of_its_own_kind);
    tcase_add_test(tc, experts_too_large_for_the_bench_are_measured_by_a_part_of_them);
    tcase_add_test(tc, a_turn_that_was_stalled_says_nothing);
    tcase_add_test(tc, attention_takes_a_share_for_every_query);
    return tc;
}
