/* Speeds follow from bytes and rates, and what takes longest is named. */
#include <check.h>
#include <math.h>

#include "daemon/engine/forecast.h"

TCase *tcase_engine_forecast(void);

#define MB 1e6

static const struct gauge_mixture kind = {.formats = {FORMAT_q8_0, FORMAT_q8_0, FORMAT_q8_0},
                                          .width = 2048,
                                          .ff = 1024,
                                          .n_experts = 64,
                                          .n_used = 8};

/* A machine of 10 GB/s and as many rows for nothing as there are; nothing else takes time. */
static struct gauge machine(void)
{
    struct gauge g = {.known[FORMAT_q8_0] = true, .attends[FORMAT_f16] = true};

    for (int p = 0; p < GAUGE_POINTS; p++)
        g.seconds[FORMAT_q8_0][p] = 1e-10;
    g.n_mixtures = 1;
    g.experts[0].mixture = kind;
    for (int p = 0; p < GAUGE_POINTS; p++) {
        g.experts[0].rows[p] = 1 << 2 * p;
        g.experts[0].seconds[p] = 12.5e-4; /* 8000 MB are 640 of them */
    }
    return g;
}

static struct model_work dense(void)
{
    struct model_work w = {.head = FORMAT_q8_0,
                           .head_bytes = 100 * MB,
                           .n_layers = 10,
                           .kv = format_of(FORMAT_f16),
                           .spans[SPAN_ALL] = {.bytes = 1000, .rows = 1}};

    w.dense[FORMAT_q8_0] = 900 * MB;
    return w;
}

static struct model_work mixture(void)
{
    struct model_work w = dense();

    w.experts[FORMAT_q8_0] = 8000 * MB;
    w.n_units = 10;
    w.n_experts = 64;
    w.n_used = 8;
    w.mixtures[0] = (struct model_work_mixture){.kind = kind, .n_layers = 10};
    w.n_mixtures = 1;
    return w;
}

static struct forecast_input input(const struct model_work *w, const struct gauge *g,
                                   const struct placement *p, double drive)
{
    return (struct forecast_input){.work = w,
                                   .placement = p,
                                   .gauge = g,
                                   .n_ctx = 4096,
                                   .n_batch = 512,
                                   .drive_rate = drive,
                                   .slice_rate = drive,
                                   .drive_wait_s = 0.25e-3};
}

static struct forecast tell(const struct model_work *w, const struct gauge *g,
                            const struct placement *p, double drive, double hits)
{
    struct forecast_input in = input(w, g, p, drive);
    struct forecast f;

    in.hit_rate = hits;
    forecast(&in, &f);
    return f;
}

START_TEST(what_is_resident_runs_at_the_rate_of_memory)
{
    struct gauge g = machine();
    struct model_work w = dense();
    struct placement p = {.mode = PLACEMENT_ALL};
    struct forecast f = tell(&w, &g, &p, 0, 1);

    ck_assert_uint_eq(f.depth, FORECAST_DEPTH);
    ck_assert_double_eq_tol(f.decode.per_s, 10, 1e-9); /* 1 GB at 10 GB/s */
    ck_assert_int_eq(f.decode.limit, LIMIT_MEMORY);
    ck_assert_double_eq(f.decode.read_bytes, 0);
    g.attention[FORMAT_f16][0] = 1e-7; /* 512 positions of 1000 bytes: 51 ms */
    ck_assert_double_eq_tol(tell(&w, &g, &p, 0, 1).decode.per_s, 1 / 0.1512, 1e-6);
}
END_TEST

START_TEST(a_slow_kernel_is_called_compute_and_many_small_operations_waiting)
{
    struct gauge g = machine();
    struct model_work w = dense();
    struct placement p = {.mode = PLACEMENT_ALL};

    g.known[FORMAT_q4_k] = true;
    g.seconds[FORMAT_q4_k][0] = 1e-9;
    w.dense[FORMAT_q4_k] = w.dense[FORMAT_q8_0];
    w.dense[FORMAT_q8_0] = 0;
    ck_assert_int_eq(tell(&w, &g, &p, 0, 1).decode.limit, LIMIT_COMPUTE);
    g.op_s = 1e-3;
    w.n_ops = 10000;
    ck_assert_int_eq(tell(&w, &g, &p, 0, 1).decode.limit, LIMIT_WAIT);
}
END_TEST

START_TEST(what_streams_is_read_while_the_rest_computes)
{
    struct gauge g = machine();
    struct model_work w = dense();
    struct placement p = {.mode = PLACEMENT_STREAM, .stream_bytes = (size_t)(500 * MB)};
    struct forecast fast = tell(&w, &g, &p, 1e12, 1), slow = tell(&w, &g, &p, 1e9, 1);

    ck_assert_double_eq_tol(fast.decode.per_s, 10, 0.1);
    ck_assert_int_eq(slow.decode.limit, LIMIT_DRIVE);
    ck_assert_double_eq(slow.decode.read_bytes, 500 * MB);
    ck_assert_double_gt(slow.decode.per_s,
                        1.5); /* 0.5 s at the drive's rate, a little less in truth */
    ck_assert_double_le(slow.decode.per_s, 2);
    ck_assert_double_gt(slow.prefill.per_s, 100 * slow.decode.per_s);
}
END_TEST

START_TEST(experts_that_miss_are_read_and_hits_are_not)
{
    struct gauge g = machine();
    struct model_work w = mixture();
    struct placement p = {.mode = PLACEMENT_EXPERTS, .n_slots = 320};
    struct forecast none = tell(&w, &g, &p, 1e9, 0), half = tell(&w, &g, &p, 1e9, 0.5),
                    all = tell(&w, &g, &p, 1e9, 1);

    ck_assert_double_eq_tol(none.decode.read_bytes, 1000 * MB, 1); /* 8 of 64 */
    ck_assert_double_eq_tol(half.decode.read_bytes, 500 * MB, 1);
    ck_assert_double_eq(all.decode.read_bytes, 0);
    ck_assert_double_lt(none.decode.per_s, half.decode.per_s);
    ck_assert_double_lt(half.decode.per_s, all.decode.per_s);
    ck_assert_int_eq(none.decode.limit, LIMIT_DRIVE);
    /* a chunk of 512 wants all experts once, half of which are there */
    ck_assert_double_eq_tol(none.prefill.read_bytes, 4000 * MB, MB);
    p.mode = PLACEMENT_ALL;
    ck_assert_double_eq(tell(&w, &g, &p, 1e9, 0).decode.read_bytes, 0);
}
END_TEST

START_TEST(a_layer_that_misses_waits_for_the_drive_to_begin_and_another_does_not)
{
    struct gauge g = machine();
    struct model_work w = mixture();
    struct placement p = {.mode = PLACEMENT_EXPERTS, .n_slots = 320};
    struct forecast_input in = input(&w, &g, &p, 1e15);
    double some = 1 - pow(0.9, 8); /* of the layers miss one at least */
    struct forecast f;

    in.drive_wait_s = 1;
    in.hit_rate = 1;
    forecast(&in, &f);
    ck_assert_double_eq(f.decode.wait_s, 0);
    ck_assert_double_eq_tol(1 / f.decode.per_s, 0.1 + 10 * 0.01, 1e-6);
    in.hit_rate = 0.9;
    forecast(&in, &f);
    ck_assert_double_eq_tol(f.decode.wait_s, 10 * some, 1e-6);
    /* then the 0.8 of 8 that landed together compute, for 1.25 ms each; the others have meanwhile */
    ck_assert_double_eq_tol(1 / f.decode.per_s, 0.1 + 10 * (some + 0.001 + (1 - some) * 0.01),
                            1e-4);
    in.hit_rate = 0;
    forecast(&in, &f);
    ck_assert_double_eq_tol(f.decode.wait_s, 10, 1e-6);
}
END_TEST

START_TEST(hits_compute_while_misses_of_their_own_layer_are_read)
{
    struct gauge g = machine();
    struct model_work w = mixture();
    struct placement p = {.mode = PLACEMENT_EXPERTS, .n_slots = 320};
    static const double reads_ms[] = {0.1, 1, 5};

    for (size_t i = 0; i < 3; i++) {
        struct forecast_input in = input(&w, &g, &p, 12.5 * MB / (reads_ms[i] / 1e3));
        double ms = 0, choose = 1;
        struct forecast f;

        in.drive_wait_s = 0;
        in.hit_rate = 0.5;
        forecast(&in, &f);
        for (int k = 0; k <= 8; k++) { /* of 8 miss; all take 1.25 ms to compute */
            double at = 1.25 * (8 - k);

            for (int landed = 1; landed <= k; landed++)
                at = fmax(at, reads_ms[i] * landed) + 1.25;
            ms += choose / 256 * at;
            choose = choose * (8 - k) / (k + 1);
        }
        ck_assert_double_ge(ms, 10); /* as long as all of them compute */
        ck_assert_double_eq_tol(1 / f.decode.per_s, 0.1 + 10 * ms / 1e3, 1e-4);
    }
}
END_TEST

START_TEST(a_larger_chunk_reads_less_for_a_prompt)
{
    struct gauge g = machine();
    struct model_work w = dense();
    struct placement p = {.mode = PLACEMENT_STREAM, .stream_bytes = (size_t)(500 * MB)};
    struct forecast_input in = input(&w, &g, &p, 1e9);
    struct forecast small, large;

    in.n_batch = 128;
    forecast(&in, &small);
    in.n_batch = 512;
    forecast(&in, &large);
    ck_assert_double_eq(small.prefill.read_bytes, 4 * large.prefill.read_bytes);
    ck_assert_double_gt(large.prefill.per_s, small.prefill.per_s);
}
END_TEST

START_TEST(slices_are_read_at_a_rate_of_their_own)
{
    struct gauge g = machine();
    struct model_work d = dense(), m = mixture();
    struct placement ring = {.mode = PLACEMENT_STREAM, .stream_bytes = (size_t)(500 * MB)};
    struct placement slots = {.mode = PLACEMENT_EXPERTS, .n_slots = 320};
    struct forecast_input in = input(&d, &g, &ring, 1e9);
    struct forecast f;

    in.n_batch = 128;
    in.slice_rate = 5e8;
    forecast(&in, &f);
    ck_assert_double_eq_tol(f.decode.read_s, f.decode.read_bytes / 1e9, 1e-9);
    ck_assert_double_eq_tol(f.prefill.read_s, f.prefill.read_bytes / 1e9, 1e-9);
    in.work = &m;
    in.placement = &slots;
    forecast(&in, &f);
    ck_assert_double_gt(f.decode.read_bytes, 0);
    ck_assert_double_eq_tol(f.decode.read_s, f.decode.read_bytes / 5e8, 1e-9);
    ck_assert_double_eq_tol(f.prefill.read_s, f.prefill.read_bytes / 5e8, 1e-9);
}
END_TEST

START_TEST(without_a_rate_that_matters_nothing_is_told)
{
    struct gauge g = machine(), unknown = {0};
    struct model_work w = dense();
    struct placement p = {.mode = PLACEMENT_STREAM, .stream_bytes = 1};

    ck_assert_double_eq(tell(&w, &g, &p, 0, 1).decode.per_s, 0);
    ck_assert_double_eq(tell(&w, &unknown, &p, 1e9, 1).prefill.per_s, 0);
    w = mixture();
    g.n_mixtures = 0;
    ck_assert_double_eq(tell(&w, &g, &p, 1e9, 1).decode.per_s, 0);
}
END_TEST

START_TEST(even_routing_hits_what_is_there_and_a_little_that_is_chosen_again)
{
    ck_assert_double_eq(forecast_even_hits(640, 10, 64, 8), 1);
    ck_assert_double_eq(forecast_even_hits(0, 10, 64, 8), 0);
    ck_assert_double_eq(forecast_even_hits(7, 0, 0, 0), 1);
    ck_assert_double_ge(forecast_even_hits(320, 10, 64, 8), 0.5);
    ck_assert_double_lt(forecast_even_hits(320, 10, 64, 8), 0.6);
    ck_assert_double_lt(forecast_even_hits(100, 10, 64, 8), forecast_even_hits(110, 10, 64, 8));
}
END_TEST

START_TEST(experts_of_a_layer_compute_while_others_of_it_are_read_and_after_what_attends)
{
    struct gauge g = machine();
    struct model_work w = mixture();
    struct placement p = {.mode = PLACEMENT_EXPERTS, .n_slots = 320};
    double told;

    w.head_bytes = 0;
    told = 512 / tell(&w, &g, &p, 4000 * MB / 2, 0).prefill.per_s;
    /* 4000 MB in 2 s, experts in 0.8 s beside them, the rest in 0.18 s and ten waits */
    ck_assert_double_eq_tol(told, 2.1825, 1e-3);
    told = 512 / tell(&w, &g, &p, 4000 * MB / 0.1, 0).prefill.per_s;
    ck_assert_double_eq_tol(told, 0.9825, 1e-3);
}
END_TEST

START_TEST(what_the_wanted_row_alone_meets_costs_a_prompt_next_to_nothing)
{
    struct gauge g = machine();
    struct model_work w = mixture(), last;
    struct placement p = {.mode = PLACEMENT_ALL};
    struct forecast before, after;

    for (int i = 0; i < GAUGE_POINTS; i++)
        g.seconds[FORMAT_q8_0][i] = 1e-10 * (double)gauge_rows[i];
    last = w;
    last.dense[FORMAT_q8_0] -= 90 * MB;
    last.wanted[FORMAT_q8_0] = 90 * MB;
    last.mixtures[0].n_wanted = 1;
    before = tell(&w, &g, &p, 0, 1);
    after = tell(&last, &g, &p, 0, 1);
    ck_assert_double_eq_tol(after.decode.per_s, before.decode.per_s, 1e-9);
    /* 90 MB by 512 rows: 4.6 s; a layer's experts but for eight: 0.07 s */
    ck_assert_double_eq_tol(512 / before.prefill.per_s - 512 / after.prefill.per_s,
                            90 * MB * 1e-10 * 511 + 0.07, 1e-2);
}
END_TEST

START_TEST(a_choice_that_is_not_even_touches_fewer_experts_and_misses_fewer_still)
{
    struct gauge g = machine();
    struct model_work w = mixture();
    struct placement p = {.mode = PLACEMENT_EXPERTS, .n_slots = 320};
    double chosen[64] = {1, 1, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5};
    struct forecast_input in = input(&w, &g, &p, 1e9);
    struct forecast even = tell(&w, &g, &p, 1e9, 0), f;

    in.chosen = chosen;
    forecast(&in, &f);
    ck_assert_double_eq(f.prefill.read_bytes, 0);
    ck_assert_double_lt(f.prefill.matrix_s, even.prefill.matrix_s);
    chosen[40] = 1; /* as if the most wanted were not those that are there */
    forecast(&in, &f);
    ck_assert_double_eq_tol(f.prefill.read_bytes, 8000 * MB / 64, MB);
}
END_TEST

START_TEST(a_span_is_read_as_far_as_it_reaches)
{
    struct gauge g = machine();
    struct model_work w = dense();
    struct placement p = {.mode = PLACEMENT_ALL};

    w.spans[SPAN_WINDOW] = (struct model_span){.bytes = 100, .reach = 128, .rows = 1};
    w.spans[SPAN_CHOSEN] = (struct model_span){.bytes = 10, .reach = 4096, .rows = 1};
    ck_assert_double_eq(tell(&w, &g, &p, 0, 1).tiers.kv, 512 * 1000 + 128 * 100 + 512 * 10);
}
END_TEST

START_TEST(the_formats_of_matrices_and_the_kinds_of_mixtures_are_wanted)
{
    struct gauge_mixture mixtures[MODEL_WORK_MIXTURES];
    struct model_work w = mixture();
    struct gauge_wants wants;

    w.dense[FORMAT_f32] = 1;
    w.wanted[FORMAT_q4_k] = 1;
    w.experts[FORMAT_q6_k] = 1; /* those are measured as mixtures */
    wants = forecast_wants(&w, mixtures);
    ck_assert_uint_eq(wants.formats, (uint64_t)1 << FORMAT_q8_0 | (uint64_t)1 << FORMAT_f32 |
                                         (uint64_t)1 << FORMAT_q4_k);
    ck_assert_int_eq(wants.cache, FORMAT_f16);
    ck_assert_uint_eq(wants.n_mixtures, 1);
    ck_assert(gauge_mixture_same(&wants.mixtures[0], &kind));
}
END_TEST

TCase *tcase_engine_forecast(void)
{
    TCase *tc = tcase_create("forecast");

    tcase_add_test(tc, what_is_resident_runs_at_the_rate_of_memory);
    tcase_add_test(tc, a_slow_kernel_is_called_compute_and_many_small_operations_waiting);
    tcase_add_test(tc, what_streams_is_read_while_the_rest_computes);
    tcase_add_test(tc, experts_that_miss_are_read_and_hits_are_not);
    tcase_add_test(tc, a_layer_that_misses_waits_for_the_drive_to_begin_and_another_does_not);
    tcase_add_test(tc, hits_compute_while_misses_of_their_own_layer_are_read);
    tcase_add_test(tc, a_larger_chunk_reads_less_for_a_prompt);
    tcase_add_test(tc, slices_are_read_at_a_rate_of_their_own);
    tcase_add_test(tc, without_a_rate_that_matters_nothing_is_told);
    tcase_add_test(tc, even_routing_hits_what_is_there_and_a_little_that_is_chosen_again);
    tcase_add_test(tc,
                   experts_of_a_layer_compute_while_others_of_it_are_read_and_after_what_attends);
    tcase_add_test(tc, what_the_wanted_row_alone_meets_costs_a_prompt_next_to_nothing);
    tcase_add_test(tc, a_choice_that_is_not_even_touches_fewer_experts_and_misses_fewer_still);
    tcase_add_test(tc, a_span_is_read_as_far_as_it_reaches);
    tcase_add_test(tc, the_formats_of_matrices_and_the_kinds_of_mixtures_are_wanted);
    return tc;
}
