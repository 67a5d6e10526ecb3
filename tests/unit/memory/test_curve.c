/* What the ghost lists predict is what a cache of that size really hits. */
#include <check.h>
#include <math.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/memory/curve.h"
#include "tests/support/expert_sim.h"

TCase *tcase_memory_curve(void);

#define N_EXPERTS 128
#define N_USED    8
#define N_TOKENS  4000
#define N_WARM    2000

static struct curve *make(unsigned n_layers)
{
    struct policy_layer *layers = XNEW_ARRAY(struct policy_layer, n_layers);
    struct curve *c;

    for (unsigned l = 0; l < n_layers; l++)
        layers[l] = (struct policy_layer){N_EXPERTS, N_USED, 1};
    c = curve_create(layers, n_layers);
    free(layers);
    return c;
}

/* A local trace, one that drifts, one of nearly equal use, and an even one; with few layers and
 * with more than are sampled. */
static const struct {
    char kind;
    unsigned n_layers;
} traces[] = {{'l', 16}, {'d', 16}, {'n', 16}, {'u', 16}, {'l', 48}, {'n', 48}};

START_TEST(all_points_are_within_two_points_of_what_a_cache_of_that_size_hits)
{
    unsigned n_layers = traces[_i].n_layers;
    size_t present = (size_t)n_layers * 20;
    struct curve_point points[CURVE_POINTS];
    struct curve *c = make(n_layers);
    struct trace t;

    expert_sim_invent(traces[_i].kind, n_layers, N_EXPERTS, N_USED, N_TOKENS, 5, &t);
    expert_sim_run(&t, present, 0, EXPERT_SIM_POLICY, c);
    ck_assert_int_eq(curve_points(c, present, points), CURVE_POINTS);
    for (int i = 0; i < CURVE_POINTS; i++) {
        double real = expert_sim_run(&t, points[i].slots, N_WARM, EXPERT_SIM_POLICY, NULL);

        ck_assert_uint_eq(points[i].bytes, (size_t)((double)present * points[i].factor));
        ck_assert_msg(fabs(points[i].hit_rate - real) < 0.02,
                      "%c, %u layers, %.1f x: predicted %.4f, real %.4f", traces[_i].kind, n_layers,
                      points[i].factor, points[i].hit_rate, real);
    }
    trace_clear(&t);
    curve_destroy(c);
}
END_TEST

START_TEST(a_ghost_list_holds_at_each_place_what_one_more_slot_would_hold)
{
    struct trace t;

    /* exactly, without fading: hits of every size counted from the first token on */
    expert_sim_invent('l', 1, 32, 4, 200, 9, &t);
    for (unsigned q = 0; q <= 32; q++) {
        struct policy_layer layer = {32, 4, 1};
        struct curve *c = curve_create(&layer, 1);
        double real = expert_sim_run(&t, q, 0, EXPERT_SIM_POLICY, c);

        /* CURVE_HALF_LIFE is longer than the trace: fading moves it by little, and never across sizes */
        ck_assert_double_eq_tol(curve_hit_rate(c, &q), real, 0.01);
        curve_destroy(c);
    }
    trace_clear(&t);
}
END_TEST

START_TEST(nothing_noted_is_nothing_predicted_and_nonsense_is_ignored)
{
    struct curve *c = make(3);
    struct curve_point points[CURVE_POINTS];
    struct policy_expert experts[N_EXPERTS] = {0};
    int32_t ids[4] = {-1, 5, N_EXPERTS, 5};
    unsigned quotas[3] = {1, 1, 1};

    ck_assert_int_eq(curve_points(c, 100, points), 0);
    ck_assert_double_lt(curve_hit_rate(c, quotas), 0);
    curve_note(c, 7, experts, ids, 4, 1, false); /* no such layer */
    ck_assert_int_eq(curve_points(c, 100, points), 0);
    policy_use(&experts[5], 1);
    curve_note(c, 0, experts, ids, 4, 1, false);
    policy_use(&experts[5], 2);
    curve_note(c, 0, experts, ids, 4, 2, false);
    ck_assert_double_eq_tol(curve_hit_rate(c, quotas), 0.5, 0.01); /* the first use, then a hit */
    curve_destroy(c);
}
END_TEST

START_TEST(where_all_are_there_a_first_use_says_nothing_of_sizes_and_is_a_token_all_the_same)
{
    struct curve *c = make(1);
    struct policy_expert experts[N_EXPERTS] = {0};
    unsigned quotas[1] = {1};
    int32_t id = 5;

    for (uint64_t token = 1; token <= 3; token++) {
        policy_use(&experts[id], token);
        curve_note(c, 0, experts, &id, 1, token, true);
        ck_assert_double_eq_tol(curve_tokens(c), (double)token, 0.01);
    }
    ck_assert_double_eq(curve_hit_rate(c, quotas), 1);
    curve_destroy(c);
}
END_TEST

START_TEST(sums_that_are_rounded_never_hit_more_than_all)
{
    struct curve *c = make(1);
    struct policy_expert experts[N_EXPERTS] = {0};
    unsigned quotas[1] = {N_EXPERTS};
    uint32_t state = 1;

    for (uint64_t token = 1; token <= 2000; token++) {
        int32_t ids[2];

        for (int i = 0; i < 2; i++) {
            state = state * 1664525 + 1013904223;
            ids[i] = (int32_t)((state >> 16) % N_EXPERTS);
            policy_use(&experts[ids[i]], token);
        }
        curve_note(c, 0, experts, ids, 2, token, true);
        ck_assert_double_le(curve_hit_rate(c, quotas), 1);
    }
    ck_assert_double_gt(curve_hit_rate(c, quotas), 0.999);
    curve_destroy(c);
}
END_TEST

START_TEST(more_than_everything_is_everything)
{
    struct curve *c = make(2);
    struct curve_point points[CURVE_POINTS];
    struct trace t;

    expert_sim_invent('u', 2, N_EXPERTS, N_USED, 500, 3, &t);
    expert_sim_run(&t, 200, 0, EXPERT_SIM_POLICY, c);
    ck_assert_int_eq(curve_points(c, 200, points), CURVE_POINTS);
    ck_assert_uint_eq(points[4].slots, 2 * N_EXPERTS);
    ck_assert_uint_eq(points[4].bytes, 2 * N_EXPERTS);
    ck_assert_double_gt(points[4].hit_rate, 0.95); /* but for first uses */
    trace_clear(&t);
    curve_destroy(c);
}
END_TEST

TCase *tcase_memory_curve(void)
{
    TCase *tc = tcase_create("curve");

    tcase_add_loop_test(tc, all_points_are_within_two_points_of_what_a_cache_of_that_size_hits, 0,
                        ARRAY_LEN(traces));
    tcase_add_test(tc, a_ghost_list_holds_at_each_place_what_one_more_slot_would_hold);
    tcase_add_test(tc, nothing_noted_is_nothing_predicted_and_nonsense_is_ignored);
    tcase_add_test(
        tc, where_all_are_there_a_first_use_says_nothing_of_sizes_and_is_a_token_all_the_same);
    tcase_add_test(tc, sums_that_are_rounded_never_hit_more_than_all);
    tcase_add_test(tc, more_than_everything_is_everything);
    return tc;
}
