/* Planning and loading: the plan is the ledger, refusals say what helps, nothing is left behind. */
#include <check.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/units.h"
#include "daemon/model/model_priv.h"
#include "tests/support/mkmodel.h"
#include "tests/unit/model/tiny.h"

TCase *tcase_model_load(void);

static struct cpu_backend cpu;
static struct ledger *ledger;

static void set_up(void)
{
    cpu = cpu_backend_open(2, NULL);
    ledger = ledger_create();
}

static void tear_down(void)
{
    cpu_backend_close(&cpu);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    ledger_destroy(ledger);
}

static struct model_plan plan_of(struct model *m, const struct model_options *o, size_t free_bytes)
{
    struct model_plan p;
    struct err err = {0};

    ck_assert_msg(model_plan(m, o, cpu.ops, cpu.be, free_bytes, &p, &err) == 0, "%s", err.text);
    return p;
}

static int load(struct model *m, const struct model_options *o, struct err *err)
{
    return model_load(m, o, ledger, cpu.ops, cpu.be, NULL, NULL, NULL, err);
}

START_TEST(the_plan_is_what_the_ledger_holds_afterwards)
{
    struct tiny_model o = {.family = tiny_families[_i], .fmt = format_of(FORMAT_q4_k)};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 700, .n_batch = 48, .n_out = 3};
    struct model_plan p = plan_of(m, &mo, SIZE_MAX);
    struct ledger_report r;
    struct err err = {0};

    ck_assert_msg(load(m, &mo, &err) == 0, "%s", err.text);
    ledger_report(ledger, POOL_RAM, &r);
    for (int i = 0; i < ACCOUNT_COUNT; i++)
        if (i != ACCOUNT_STAGING)
            ck_assert_msg(r.accounts[i] == p.account[i], "%s: %zu in the book, %zu planned",
                          ledger_account_name(i), r.accounts[i], p.account[i]);
    ck_assert_uint_eq(r.used, p.total);
    ck_assert_uint_eq(r.peak, p.peak);
    ck_assert_uint_eq(model_n_ctx(m), 700);
    ck_assert_uint_eq(model_n_batch(m), 48);
    model_close(m);
}
END_TEST

static int open_within(const struct tiny_model *o, struct model **ret, struct err *err)
{
    struct model_room room = {.ledger = ledger, .who = "model 'tiny'"};
    int fd = tiny_model_memfd(o);
    char *path = gguf_writer_fd_path(fd);
    int r = model_open_within(path, &room, ret, err);

    free(path);
    close(fd);
    return r;
}

static struct ledger_report report(void)
{
    struct ledger_report r;

    ledger_report(ledger, POOL_RAM, &r);
    return r;
}

/* What is asked for beforehand is never too little: nothing is charged when it is settled. */
START_TEST(text_is_charged_from_opening_to_closing_as_planned)
{
    struct tiny_model o = {.family = tiny_families[_i]};
    struct model_options mo = {.n_ctx = 700, .n_batch = 48};
    struct model *m;
    struct model_plan p;
    struct err err = {0};

    ck_assert_msg(open_within(&o, &m, &err) == 0, "%s", err.text);
    p = plan_of(m, &mo, SIZE_MAX);
    ck_assert_uint_eq(report().used, p.account[ACCOUNT_TEXT]);
    ck_assert_uint_ge(m->text_asked, p.account[ACCOUNT_TEXT]);
    ck_assert_uint_ge(report().account_peaks[ACCOUNT_TEXT], p.account[ACCOUNT_TEXT]);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, p.peak, NULL), 0);
    ck_assert_msg(load(m, &mo, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(report().used, p.total);
    ck_assert_uint_eq(report().peak, p.peak);
    ck_assert_uint_eq(model_held_bytes(m), p.total);
    model_close(m);
}
END_TEST

START_TEST(a_vocabulary_that_does_not_fit_is_refused_before_its_tables_are_made)
{
    struct tiny_model o = {.family = "llama"};
    size_t text, peak, refused = 0;
    struct model *m;
    struct err err = {0};

    ck_assert_msg(open_within(&o, &m, &err) == 0, "%s", err.text);
    text = report().used;
    peak = report().peak;
    model_close(m);
    for (size_t budget = 4096; budget < peak; budget += MAX(peak / 50, (size_t)1)) {
        ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, budget, NULL), 0);
        err_clear(&err);
        if (open_within(&o, &m, &err) == 0) {
            model_close(m);
            continue;
        }
        refused += budget < text;
        ck_assert_int_eq(err.kind, ERR_NOMEM);
        ck_assert_ptr_nonnull(strstr(err.text, "text"));
        ck_assert_ptr_nonnull(strstr(err.data, "\"text\""));
        ck_assert_uint_eq(report().used, 0);
    }
    ck_assert_uint_gt(refused, 5);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, peak, NULL), 0);
    for (long n = 0, r = -1; r < 0; n++) {
        ledger_refuse_after(ledger, n);
        r = open_within(&o, &m, &err);
        ledger_refuse_after(ledger, -1);
        if (r >= 0)
            model_close(m);
        ck_assert_uint_eq(report().used, 0);
    }
}
END_TEST

START_TEST(exactly_the_floor_is_enough_and_one_byte_less_is_refused_before_anything_is_read)
{
    struct tiny_model o = {.family = "llama", .n_layers = 6};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 2048};
    struct model_plan p = plan_of(m, &mo, 1);
    struct residency_stats s;
    struct err err = {0};

    ck_assert(!p.fits);
    ck_assert_uint_lt(p.floor, p.all);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, p.floor - 1, NULL), 0);
    ck_assert_int_eq(load(m, &mo, &err), -ERR_NOMEM);
    ck_assert_ptr_nonnull(strstr(err.text, "--ctx 1792 would need"));
    ck_assert_ptr_nonnull(strstr(err.data, "\"weights\":"));
    model_residency(m, &s);
    ck_assert_uint_eq(s.bytes_read, 0);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, p.floor, NULL), 0);
    ck_assert_msg(load(m, &mo, &err) == 0, "%s", err.text);
    model_residency(m, &s);
    ck_assert_uint_lt(s.resident_bytes, s.bytes);
    ck_assert_int_eq(s.placement.mode, PLACEMENT_STREAM);
    model_close(m);
}
END_TEST

enum { N_IDS = 9 };

/* Logits of each position, token by token, with so much memory. */
static float *logits_within(const struct tiny_model *o, size_t bytes, size_t look_bytes)
{
    struct model_options mo = {.n_ctx = 256};
    struct tiny_engine e = {.cpu = cpu, .ledger = ledger, .m = tiny_must_open(o)};
    struct residency_stats s;
    struct err err = {0};
    int32_t ids[N_IDS];
    float *out;

    tiny_ids(ids, N_IDS);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, bytes, NULL), 0);
    ck_assert_msg(load(e.m, &mo, &err) == 0, "%s", err.text);
    model_residency(e.m, &s);
    ck_assert_int_eq(s.placement.mode, look_bytes ? PLACEMENT_STREAM : PLACEMENT_ALL);
    e.m->place.look_bytes = look_bytes;
    out = tiny_logits(&e, ids, N_IDS, 1);
    model_close(e.m);
    return out;
}

START_TEST(a_computation_that_is_cut_while_weights_stream_gives_the_same_bits)
{
    struct tiny_model o = {
        .family = tiny_families[_i], .fmt = format_of(FORMAT_q4_k), .n_layers = 12};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 256};
    const size_t bytes = (size_t)N_IDS * TINY_N_VOCAB * sizeof(float);
    struct model_plan p = plan_of(m, &mo, 1);
    float *whole = logits_within(&o, SIZE_MAX, 0);

    for (size_t look = 1 << 10; look <= 1 << 16; look *= 8) {
        float *cut = logits_within(&o, p.floor, look);

        ck_assert_msg(memcmp(whole, cut, bytes) == 0, "%zu", look);
        free(cut);
    }
    free(whole);
    model_close(m);
}
END_TEST

START_TEST(all_of_it_is_resident_as_soon_as_that_fits_and_not_one_byte_before)
{
    struct tiny_model o = {.family = _i ? "qwen3moe" : "llama", .n_layers = 6};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 300};
    size_t all = plan_of(m, &mo, SIZE_MAX).all;
    struct model_plan p = plan_of(m, &mo, all);
    struct residency_stats s;

    ck_assert_int_eq(p.placement.mode, PLACEMENT_ALL);
    ck_assert_uint_eq(p.peak, all);
    p = plan_of(m, &mo, all - 1);
    ck_assert_int_ne(p.placement.mode, PLACEMENT_ALL);
    ck_assert(p.fits);
    ck_assert_uint_lt(p.peak, all);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, all, NULL), 0);
    ck_assert_int_eq(load(m, &mo, NULL), 0);
    model_residency(m, &s);
    ck_assert_uint_eq(s.resident_bytes, s.bytes);
    model_close(m);
}
END_TEST

START_TEST(without_a_context_the_largest_that_fits_is_taken_and_said)
{
    struct tiny_model o = {.family = "llama"};
    struct model *m = tiny_must_open(&o);
    struct model_options all = {0}, some = {.n_ctx = 1024};
    struct model_plan p;
    size_t enough = plan_of(m, &some, SIZE_MAX).peak;

    p = plan_of(m, &all, SIZE_MAX);
    ck_assert_uint_eq(p.n_ctx, 2048);
    ck_assert(!p.ctx_capped && p.fits);
    p = plan_of(m, &all, enough);
    ck_assert_uint_eq(p.n_ctx, 1024);
    ck_assert(p.ctx_capped && p.fits);
    p = plan_of(m, &all, enough - 1);
    ck_assert_uint_eq(p.n_ctx, 768);
    p = plan_of(m, &all, 1000);
    ck_assert_uint_eq(p.n_ctx, 256);
    ck_assert(!p.fits);
    ck_assert_ptr_nonnull(strstr(p.advice, "a budget of"));
    /* all of it has the chunk, too, that it would have with so much */
    p = plan_of(m, &all, p.all);
    ck_assert(p.fits && placement_is_whole(&p.placement));
    ck_assert_uint_eq(plan_of(m, &some, 1000).all, plan_of(m, &some, SIZE_MAX).all);
    model_close(m);
}
END_TEST

/* The rows of a chunk of a model of that preset in so many bytes; its file is a head and a hole. */
static size_t chunk_of(const char *preset, size_t n_batch, size_t bytes)
{
    struct mkmodel o = {.preset = *mkmodel_preset_of(preset), .type = mkmodel_type_of("Q4_K_M")};
    struct model_options mo = {.n_ctx = 4096, .n_batch = n_batch};
    struct mkmodel_plan file;
    struct model *m;
    struct err err;
    size_t rows;

    o.preset.n_vocab = 300;
    mkmodel_plan(&o, &file);
    ck_assert_msg(tiny_open(&file.w, &m, &err) == 0, "%s", err.text);
    rows = plan_of(m, &mo, bytes).n_batch;
    free(file.fills);
    model_close(m);
    return rows;
}

/* A cut of the budget waits for the end of a layer. */
START_TEST(a_chunk_is_short_where_a_layer_is_large_and_nobody_has_asked_for_another)
{
    ck_assert_uint_eq(chunk_of("llama-70b", 0, SIZE_MAX / 2), 256);
    ck_assert_uint_eq(chunk_of("llama-70b", 512, SIZE_MAX / 2), 512);
    ck_assert_uint_eq(chunk_of("llama-8b", 0, SIZE_MAX / 2), 512);
    ck_assert_uint_eq(chunk_of("smol-135m", 0, SIZE_MAX / 2), 512);
    /* where experts stream a chunk is as long as memory allows */
    ck_assert_uint_eq(chunk_of("llama-70b", 0, (size_t)20 << 30), 256);
    ck_assert_uint_ge(chunk_of("qwen3moe-30b-a3b", 0, (size_t)4 << 30), 1024);
}
END_TEST

/* Advice is as good as its word: what it names is tried. */
START_TEST(a_plan_that_does_not_fit_says_which_cache_whose_place_or_what_budget_would_do)
{
    struct tiny_model o = {.family = "llama", .n_layers = 6};
    struct model *m = tiny_must_open(&o);
    struct model_options wide = {.n_ctx = 2048, .kv = format_of(FORMAT_f32)}, q8 = wide, q4 = wide;
    struct model_others others = {.bytes = 100 << 20};
    size_t full = plan_of(m, &wide, SIZE_MAX).floor, floor_q8, floor_q4;
    char want[64], size[24];
    struct model_plan p;

    q8.kv = format_of(FORMAT_q8_0);
    q4.kv = format_of(FORMAT_q4_0);
    floor_q8 = plan_of(m, &q8, SIZE_MAX).floor;
    floor_q4 = plan_of(m, &q4, SIZE_MAX).floor;
    model_others_add(&others, "small", 3 << 20, 1);
    model_others_add(&others, "large", 9 << 20, full);
    model_others_add(&others, "right", 5 << 20, full - floor_q8);
    wide.others = &others;
    p = plan_of(m, &wide, floor_q8);
    snprintf(want, sizeof want, "--kv q8_0 would need %s",
             units_format_size_up(floor_q8, size, sizeof size));
    ck_assert_msg(strstr(p.advice, want) != NULL, "%s", p.advice);
    ck_assert_msg(strstr(p.advice, "unloading 'right', which holds 5.00 MiB") != NULL, "%s",
                  p.advice);
    snprintf(want, sizeof want, "a budget of %s would do",
             units_format_size_up(full + others.bytes, size, sizeof size));
    ck_assert_msg(strstr(p.advice, want) != NULL, "%s", p.advice);
    p = plan_of(m, &wide, floor_q8 - 1);
    ck_assert_ptr_null(strstr(p.advice, "q8_0"));
    ck_assert_ptr_nonnull(strstr(p.advice, "--kv q4_0 would need"));
    ck_assert_ptr_nonnull(strstr(p.advice, "unloading 'large'"));
    /* Two where one is not enough; nobody where all are not. */
    others.list[0].gives = full - floor_q4;
    others.list[1].gives = floor_q4 - 1;
    p = plan_of(m, &wide, 1);
    ck_assert_msg(strstr(p.advice, "unloading 'large' and 'right', which hold 14.0 MiB") != NULL,
                  "%s", p.advice);
    others.list[1].gives = others.list[2].gives = 0;
    p = plan_of(m, &wide, 1);
    ck_assert_ptr_null(strstr(p.advice, "unloading"));
    /* One that is narrow already has nothing to hear of caches. */
    p = plan_of(m, &q4, floor_q4 - 1);
    ck_assert_ptr_null(strstr(p.advice, "--kv"));
    model_close(m);
}
END_TEST

START_TEST(where_weights_stream_a_chunk_that_nobody_set_is_longer_for_a_small_share)
{
    struct tiny_model o = {.family = "qwen3moe", .n_layers = 40};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 2048, .n_out = 1};
    struct model_options set = {.n_ctx = 2048, .n_out = 1, .n_batch = 512};
    size_t all = plan_of(m, &mo, SIZE_MAX).all, budget = all * 3 / 4;
    struct model_plan p = plan_of(m, &mo, all), q;
    struct err err = {0};

    ck_assert(p.placement.mode == PLACEMENT_ALL);
    ck_assert_uint_eq(p.n_batch, 512);
    p = plan_of(m, &mo, budget);
    q = plan_of(m, &set, budget);
    ck_assert(p.placement.mode == PLACEMENT_EXPERTS && p.fits && q.fits);
    ck_assert_uint_eq(q.n_batch, 512);
    ck_assert_uint_ge(p.n_batch, 1024);
    ck_assert_uint_le(p.account[ACCOUNT_SCRATCH] + p.account[ACCOUNT_KV],
                      q.account[ACCOUNT_SCRATCH] + q.account[ACCOUNT_KV] + budget / 16);
    ck_assert_uint_eq(p.floor, q.floor);
    ck_assert_int_eq(ledger_set_budget(ledger, POOL_RAM, budget, &err), 0);
    ck_assert_msg(load(m, &mo, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(model_n_batch(m), p.n_batch);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), p.total);
    model_close(m);
    /* near the floor there is nothing to give */
    m = tiny_must_open(&o);
    ck_assert_uint_le(plan_of(m, &mo, p.floor).n_batch, 512);
    model_close(m);
}
END_TEST

START_TEST(every_charge_refused_in_turn_leaves_nothing_and_the_next_load_works)
{
    struct tiny_model o = {.family = "mixtral"};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 300};
    struct err err = {0};
    long n = 0;
    int r;

    for (;; n++) {
        ledger_refuse_after(ledger, n);
        r = load(m, &mo, &err);
        ledger_refuse_after(ledger, -1);
        if (r == 0)
            break;
        ck_assert_int_eq(r, -ERR_NOMEM);
        ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
        ck_assert(!model_loaded(m));
    }
    ck_assert_int_eq(n, 6); /* text, scratch, kv, weights, books of experts, staging */
    ck_assert(model_loaded(m));
    model_close(m);
}
END_TEST

static _Atomic bool cancel_flag;

START_TEST(a_cancelled_load_leaves_nothing_and_says_so)
{
    struct tiny_model o = {.family = "llama"};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {.n_ctx = 300};
    struct err err = {0};

    cancel_flag = true;
    ck_assert_int_eq(model_load(m, &mo, ledger, cpu.ops, cpu.be, NULL, NULL, &cancel_flag, &err),
                     -ERR_CANCELLED);
    ck_assert(!model_loaded(m));
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    model_close(m);
}
END_TEST

START_TEST(a_file_cut_between_opening_and_loading_fails_the_load_by_a_tensor_s_name)
{
    struct tiny_model o = {.family = "llama"};
    int fd = tiny_model_memfd(&o);
    char *path = gguf_writer_fd_path(fd);
    struct model_options mo = {.n_ctx = 300};
    struct model *m = NULL;
    struct err err = {0};

    ck_assert_int_eq(model_open(path, &m, &err), 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)gguf_file_bytes(model_gguf(m)) / 2), 0);
    ck_assert_int_eq(load(m, &mo, &err), -ERR_IO);
    ck_assert_ptr_nonnull(strstr(err.text, "blk."));
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    model_close(m);
    free(path);
    close(fd);
}
END_TEST

START_TEST(options_that_make_no_sense_are_refused)
{
    static const struct {
        size_t n_ctx, n_batch;
        enum format_id kv;
        const char *says;
    } wrong[] = {{2049, 0, FORMAT_f16, "2049"},
                 {0, 100000, FORMAT_f16, "100000"},
                 {300, 0, FORMAT_q4_k, "q4_k"},
                 {300, 0, FORMAT_q5_0, "q5_0"}};
    struct tiny_model o = {.family = "llama"};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {
        .n_ctx = wrong[_i].n_ctx, .n_batch = wrong[_i].n_batch, .kv = format_of(wrong[_i].kv)};
    struct err err = {0};

    ck_assert_int_lt(load(m, &mo, &err), 0);
    ck_assert_msg(strstr(err.text, wrong[_i].says), "'%s' does not say '%s'", err.text,
                  wrong[_i].says);
    ck_assert_uint_eq(ledger_used(ledger, POOL_RAM), 0);
    model_close(m);
}
END_TEST

START_TEST(a_context_of_the_largest_number_is_planned_without_wrapping)
{
    struct tiny_model o = {.family = "llama", .n_ctx = 2147483647};
    struct model *m = tiny_must_open(&o);
    struct model_options mo = {0};
    struct model_plan p = plan_of(m, &mo, (size_t)64 << 20);

    ck_assert(p.fits && p.ctx_capped);
    ck_assert_uint_le(p.peak, (size_t)64 << 20);
    mo.n_ctx = 2147483647;
    p = plan_of(m, &mo, (size_t)64 << 20);
    ck_assert(!p.fits);
    ck_assert_uint_ge(p.account[ACCOUNT_KV], (size_t)2147483647 * 1024);
    model_close(m);
}
END_TEST

START_TEST(experts_count_by_the_share_that_a_token_reads)
{
    struct tiny_model dense = {.family = "llama", .tied = true},
                      moe = {.family = "mixtral", .tied = true};
    struct model_options mo = {.n_ctx = 256};
    struct model *m = tiny_must_open(&dense);
    struct residency_stats s;
    struct err err = {0};
    double weights;

    ck_assert_int_eq(load(m, &mo, &err), 0);
    model_residency(m, &s);
    weights = plan_of(m, &mo, SIZE_MAX).bytes_per_token - 128.0 * 1024;
    ck_assert_double_eq_tol(weights, (double)s.bytes, 1.0);
    model_close(m);
    m = tiny_must_open(&moe);
    ck_assert_int_eq(load(m, &mo, &err), 0);
    model_residency(m, &s);
    weights = plan_of(m, &mo, SIZE_MAX).bytes_per_token - 128.0 * 1024;
    /* 2 of 6 experts of 2 layers, each of 3 matrices of 256 × 256 f16 */
    ck_assert_double_eq_tol(weights, (double)s.bytes - 4.0 * 2 * 3 * 65536 * 2, 1.0);
    model_close(m);
}
END_TEST

TCase *tcase_model_load(void)
{
    TCase *tc = tcase_create("load");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_loop_test(tc, the_plan_is_what_the_ledger_holds_afterwards, 0, 6);
    tcase_add_loop_test(tc, text_is_charged_from_opening_to_closing_as_planned, 0, 6);
    tcase_add_test(tc, a_vocabulary_that_does_not_fit_is_refused_before_its_tables_are_made);
    tcase_add_loop_test(tc, a_computation_that_is_cut_while_weights_stream_gives_the_same_bits, 0,
                        3); /* the others stream experts */
    tcase_add_test(
        tc, exactly_the_floor_is_enough_and_one_byte_less_is_refused_before_anything_is_read);
    tcase_add_loop_test(tc, all_of_it_is_resident_as_soon_as_that_fits_and_not_one_byte_before, 0,
                        2);
    tcase_add_test(tc, without_a_context_the_largest_that_fits_is_taken_and_said);
    tcase_add_test(tc, a_chunk_is_short_where_a_layer_is_large_and_nobody_has_asked_for_another);
    tcase_add_test(tc,
                   a_plan_that_does_not_fit_says_which_cache_whose_place_or_what_budget_would_do);
    tcase_add_test(tc, where_weights_stream_a_chunk_that_nobody_set_is_longer_for_a_small_share);
    tcase_add_test(tc, every_charge_refused_in_turn_leaves_nothing_and_the_next_load_works);
    tcase_add_test(tc, a_cancelled_load_leaves_nothing_and_says_so);
    tcase_add_test(tc, a_file_cut_between_opening_and_loading_fails_the_load_by_a_tensor_s_name);
    tcase_add_loop_test(tc, options_that_make_no_sense_are_refused, 0, 4);
    tcase_add_test(tc, a_context_of_the_largest_number_is_planned_without_wrapping);
    tcase_add_test(tc, experts_count_by_the_share_that_a_token_reads);
    return tc;
}
