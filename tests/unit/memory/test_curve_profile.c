/* A curve that was kept says what it said, and nothing else passes for one. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/memory/curve_profile.h"
#include "tests/support/expert_sim.h"
#include "tests/support/scratch.h"

TCase *tcase_memory_curve_profile(void);

#define N_EXPERTS 32
#define N_USED    4
#define N_LAYERS  4

static const char *dir;

static void set_up(void)
{
    dir = scratch_make();
}

static void tear_down(void)
{
    ck_assert_int_eq(scratch_remove(), 0);
}

/* Learnt from that many tokens of a local trace. */
static struct curve *learnt(size_t n_tokens)
{
    struct policy_layer layers[N_LAYERS];
    struct curve *c;
    struct trace t;

    for (unsigned l = 0; l < N_LAYERS; l++)
        layers[l] = (struct policy_layer){N_EXPERTS, N_USED, 1};
    c = curve_create(layers, N_LAYERS);
    expert_sim_invent('l', N_LAYERS, N_EXPERTS, N_USED, n_tokens, 3, &t);
    expert_sim_run(&t, (size_t)N_LAYERS * 8, 0, EXPERT_SIM_POLICY, c);
    trace_clear(&t);
    return c;
}

START_TEST(what_is_kept_comes_back_and_is_the_curve)
{
    struct curve *c = learnt(400);
    struct curve_profile p, kept;

    ck_assert(curve_profile_make(c, &p));
    curve_profile_save(&p, dir, "abc");
    ck_assert(curve_profile_load(dir, "abc", N_EXPERTS, &kept));
    ck_assert_double_eq_tol(curve_profile_hits(&kept, 9),
                            (curve_quota_rate(c, 9) + curve_warm_rate(c, 9)) / 2, 1e-12);
    ck_assert_double_gt(curve_profile_hits(&kept, 9), 0.2);
    ck_assert_double_eq_tol(kept.tokens, curve_tokens(c), 1e-9);
    curve_profile_clear(&p);
    curve_profile_clear(&kept);
    curve_destroy(c);
}
END_TEST

START_TEST(once_warm_a_first_use_is_a_miss_of_few_slots_alone)
{
    struct curve *few = learnt(2 * (size_t)CURVE_PROFILE_TOKENS), *many = learnt(4000);

    ck_assert_double_lt(curve_quota_rate(few, N_EXPERTS), 0.9);
    ck_assert_double_eq(curve_warm_rate(few, N_EXPERTS), 1);
    /* what few tokens have told is what many tell */
    for (unsigned slots = 1; slots <= N_EXPERTS; slots++)
        ck_assert_double_eq_tol(curve_warm_rate(few, slots), curve_quota_rate(many, slots), 0.06);
    curve_destroy(few);
    curve_destroy(many);
}
END_TEST

START_TEST(more_slots_never_hit_less_and_a_fraction_lies_between)
{
    struct curve *c = learnt(400);
    struct curve_profile p;

    ck_assert(curve_profile_make(c, &p));
    ck_assert_double_eq(curve_profile_hits(&p, 0), 0);
    ck_assert_double_eq(curve_profile_hits(&p, -1), 0);
    for (unsigned q = 0; q < N_EXPERTS; q++) {
        double here = curve_profile_hits(&p, q), next = curve_profile_hits(&p, q + 1);

        ck_assert_double_le(here, next);
        ck_assert_double_eq_tol(curve_profile_hits(&p, q + 0.5), (here + next) / 2, 1e-12);
    }
    ck_assert_double_eq(curve_profile_hits(&p, 1000), curve_profile_hits(&p, N_EXPERTS));
    curve_profile_clear(&p);
    curve_destroy(c);
}
END_TEST

START_TEST(a_few_tokens_are_no_curve)
{
    struct curve *c = learnt(CURVE_PROFILE_TOKENS / 2);
    struct curve_profile p;

    ck_assert(!curve_profile_make(c, &p));
    ck_assert(!curve_profile_make(NULL, &p));
    curve_destroy(c);
}
END_TEST

START_TEST(another_shape_another_key_and_a_broken_file_are_not_taken)
{
    static const char *const broken[] = {
        "",
        "{",
        "[]",
        "{\"version\":1}",
        "{\"version\":1,\"experts\":1,\"tokens\":99,\"hits\":[0,2]}",
        "{\"version\":1,\"experts\":1,\"tokens\":99,\"hits\":[0]}"};
    struct curve *c = learnt(400);
    struct curve_profile p, kept;

    ck_assert(curve_profile_make(c, &p));
    curve_profile_save(&p, dir, "abc");
    ck_assert(!curve_profile_load(dir, "abd", N_EXPERTS, &kept));
    ck_assert(!curve_profile_load(dir, "abc", N_EXPERTS + 1, &kept));
    ck_assert(!curve_profile_load(dir, "abc", 0, &kept));
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        char *path = xasprintf("%s/curve-x.json", dir);

        ck_assert_int_ge(file_replace(path, broken[i], strlen(broken[i]), 0600, NULL), 0);
        ck_assert(!curve_profile_load(dir, "x", 1, &kept));
        free(path);
    }
    curve_profile_clear(&p);
    curve_destroy(c);
}
END_TEST

TCase *tcase_memory_curve_profile(void)
{
    TCase *tc = tcase_create("curve_profile");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, what_is_kept_comes_back_and_is_the_curve);
    tcase_add_test(tc, once_warm_a_first_use_is_a_miss_of_few_slots_alone);
    tcase_add_test(tc, more_slots_never_hit_less_and_a_fraction_lies_between);
    tcase_add_test(tc, a_few_tokens_are_no_curve);
    tcase_add_test(tc, another_shape_another_key_and_a_broken_file_are_not_taken);
    return tc;
}
