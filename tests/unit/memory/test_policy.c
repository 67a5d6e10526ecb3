/* Which experts stay, and how slots are divided. */
#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/memory/policy.h"
#include "tests/support/expert_sim.h"

TCase *tcase_memory_policy(void);

#define N 6

static struct policy_expert layer[N];

static void set_up(void)
{
    memset(layer, 0, sizeof layer);
    for (unsigned e = 0; e < N; e++)
        layer[e].resident = true;
}

static unsigned first_victim(uint64_t token)
{
    unsigned id = N;

    ck_assert_uint_eq(policy_victims(layer, N, token, 1, &id), 1);
    return id;
}

START_TEST(heat_halves_in_a_half_life)
{
    for (int i = 0; i < 4; i++)
        policy_use(&layer[0], 10);
    ck_assert_double_eq_tol(policy_heat(&layer[0], 10), 4.0, 1e-9);
    ck_assert_double_eq_tol(policy_heat(&layer[0], 10 + 64), 2.0, 1e-9);
    ck_assert_double_eq_tol(policy_heat(&layer[0], 10 + 128), 1.0, 1e-9);
    ck_assert_double_eq(policy_heat(&layer[1], 10), 0.0);
}
END_TEST

START_TEST(what_the_last_token_used_goes_last_however_hot_the_others_are)
{
    for (uint64_t t = 1; t <= 100; t++)
        for (unsigned e = 1; e < N; e++)
            policy_use(&layer[e], t);
    policy_use(&layer[0], 101); /* once, but just now */
    policy_use(&layer[4], 101);
    ck_assert_uint_ne(first_victim(101), 0);
    ck_assert_uint_ne(first_victim(101), 4);
    /* a token later it is the coldest */
    policy_use(&layer[5], 102);
    ck_assert_uint_eq(first_victim(102), 0);
}
END_TEST

START_TEST(the_rest_goes_by_frequency_and_then_by_age)
{
    policy_use(&layer[0], 1);
    policy_use(&layer[0], 2);
    for (unsigned e = 1; e < N; e++)
        policy_use(&layer[e], 2 + e);
    policy_use(&layer[5], 50);
    ck_assert_uint_eq(first_victim(51), 1); /* one use each, and the oldest */
    layer[1].resident = false;
    ck_assert_uint_eq(first_victim(51), 2);
}
END_TEST

START_TEST(a_pinned_or_absent_expert_is_never_a_victim)
{
    unsigned ids[N];

    for (unsigned e = 0; e < N; e++)
        policy_use(&layer[e], e + 1);
    layer[0].pins = 1;
    layer[1].resident = false;
    ck_assert_uint_eq(policy_victims(layer, N, 99, N, ids), N - 2);
    for (unsigned i = 0; i < N - 2; i++)
        ck_assert_uint_eq(ids[i], i + 2);
    ck_assert_uint_eq(policy_victims(layer, N, 99, 0, ids), 0);
    for (unsigned e = 0; e < N; e++)
        layer[e].pins = 1;
    ck_assert_uint_eq(policy_victims(layer, N, 99, 2, ids), 0);
}
END_TEST

START_TEST(the_worst_n_are_the_first_n_of_the_order)
{
    struct policy_expert many[200] = {0};
    unsigned all[200], few[9];
    uint64_t seed = 7;

    for (int i = 0; i < 4000; i++) {
        seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
        policy_use(&many[(seed >> 33) % 200], (uint64_t)i / 8 + 1);
    }
    for (unsigned e = 0; e < 200; e++)
        many[e].resident = e % 3 != 0;
    ck_assert_uint_eq(policy_victims(many, 200, 500, 200, all), 133);
    ck_assert_uint_eq(policy_victims(many, 200, 500, 9, few), 9);
    ck_assert_mem_eq(all, few, sizeof few);
    for (unsigned i = 1; i < 133; i++)
        ck_assert(policy_less(&many[all[i - 1]], &many[all[i]], 500));
}
END_TEST

START_TEST(prefill_ranks_below_decode_and_takes_no_slot_that_decode_used_lately)
{
    policy_use(&layer[0], 10);
    policy_use_prefill(&layer[1], 11, 1.0);
    ck_assert(policy_less(&layer[1], &layer[0], 12));
    ck_assert(!policy_prefill_may_evict(&layer[1], &layer[0], 12));
    ck_assert_uint_eq(layer[1].last_token, 0);
    /* many chunks make it hotter than something decode gave up long ago */
    for (int chunk = 0; chunk < 8; chunk++)
        policy_use_prefill(&layer[1], 200, 1.0);
    ck_assert(policy_prefill_may_evict(&layer[1], &layer[0], 200));
    layer[0].pins = 1;
    ck_assert(!policy_prefill_may_evict(&layer[1], &layer[0], 200));
    /* a share of nothing is no mark */
    policy_use_prefill(&layer[2], 200, 0.0);
    ck_assert_uint_eq(layer[2].uses, 0);
}
END_TEST

START_TEST(slots_are_the_same_share_of_each_layer)
{
    struct policy_layer layers[3] = {{128, 8, 100}, {128, 8, 100}, {64, 8, 50}};
    unsigned quotas[3];
    size_t all = 128 * 100 * 2 + 64 * 50;

    ck_assert_uint_eq(policy_quotas(layers, 3, all, quotas), 128 + 128 + 64);
    ck_assert_uint_eq(policy_quotas(layers, 3, all * 10, quotas), 128 + 128 + 64);
    ck_assert_uint_eq(policy_quotas(layers, 3, all / 2, quotas), 64 + 64 + 32);
    ck_assert_uint_eq(quotas[0], 64);
    ck_assert_uint_eq(quotas[2], 32);
    ck_assert_uint_eq(policy_quotas(layers, 3, 0, quotas), 0);
    /* what is left over goes out by one, never more than there is */
    for (size_t bytes = 0; bytes < 4000; bytes += 37) {
        size_t slots = policy_quotas(layers, 3, bytes, quotas);
        size_t used = 100 * (size_t)(quotas[0] + quotas[1]) + 50 * (size_t)quotas[2];

        ck_assert_uint_eq(slots, quotas[0] + quotas[1] + quotas[2]);
        ck_assert_uint_le(used, bytes);
        ck_assert_uint_lt(bytes - used, 50);
    }
}
END_TEST

/* The table of streaming-trial.md, section 3: slots of 0.35, 1.6 and 3 GiB, 8 of them staging. */
static const struct {
    char kind;
    double least[3]; /* hit % */
} tables[] = {
    {'l', {53.0, 79.8, 88.4}},
    {'d', {53.2, 77.5, 86.5}},
    {'u', {5.4, 26.6, 50.5}},
};

START_TEST(the_policy_reaches_the_hit_rates_of_the_trial_and_is_never_below_lru)
{
    static const size_t slots[3] = {122 - 8, 559 - 8, 1048 - 8};
    struct trace t;

    expert_sim_invent(tables[_i].kind, 16, 128, 8, 1500, 42, &t);
    for (int s = 0; s < 3; s++) {
        double policy = 100 * expert_sim_run(&t, slots[s], 500, EXPERT_SIM_POLICY, NULL);
        double lru = 100 * expert_sim_run(&t, slots[s], 500, EXPERT_SIM_LRU, NULL);

        ck_assert_msg(policy >= tables[_i].least[s], "%c, %zu slots: %.1f %%", tables[_i].kind,
                      slots[s], policy);
        ck_assert_msg(policy >= lru - 0.3, "%c, %zu slots: %.1f %%, LRU %.1f %%", tables[_i].kind,
                      slots[s], policy, lru);
    }
    trace_clear(&t);
}
END_TEST

TCase *tcase_memory_policy(void)
{
    TCase *tc = tcase_create("policy");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(tc, heat_halves_in_a_half_life);
    tcase_add_test(tc, what_the_last_token_used_goes_last_however_hot_the_others_are);
    tcase_add_test(tc, the_rest_goes_by_frequency_and_then_by_age);
    tcase_add_test(tc, a_pinned_or_absent_expert_is_never_a_victim);
    tcase_add_test(tc, the_worst_n_are_the_first_n_of_the_order);
    tcase_add_test(tc, prefill_ranks_below_decode_and_takes_no_slot_that_decode_used_lately);
    tcase_add_test(tc, slots_are_the_same_share_of_each_layer);
    tcase_add_loop_test(tc, the_policy_reaches_the_hit_rates_of_the_trial_and_is_never_below_lru, 0,
                        ARRAY_LEN(tables));
    return tc;
}
