/* More cache and slower tokens: when that is a cliff, and when it is not. */
#include <check.h>

#include "common/alloc.h"
#include "daemon/memory/guard.h"

TCase *tcase_memory_guard(void);

#define USES 100

static struct guard guard;
static double slower;

static void set_up(void)
{
    guard = (struct guard){0};
    slower = 0;
}

/* n tokens alike; the last verdict that was not to stay. */
static enum guard_verdict run(unsigned n, size_t slots, int64_t us, unsigned hits, unsigned faults)
{
    enum guard_verdict all = GUARD_STAY;

    for (unsigned i = 0; i < n; i++) {
        struct guard_token t = {
            .us = us, .uses = USES, .hits = hits, .major_faults = faults, .slots = slots};
        enum guard_verdict v = guard_note(&guard, &t, &slower);

        if (v != GUARD_STAY)
            all = v;
    }
    return all;
}

START_TEST(a_larger_cache_with_faults_and_slower_tokens_steps_back_to_the_best_that_was_seen)
{
    ck_assert_int_eq(run(GUARD_WINDOW, 100, 50000, 60, 0), GUARD_STAY);
    ck_assert_int_eq(run(GUARD_WINDOW, 200, 40000, 80, 0), GUARD_STAY);
    ck_assert_int_eq(run(GUARD_WINDOW - 1, 400, 90000, 90, 50), GUARD_STAY);
    ck_assert_int_eq(run(1, 400, 90000, 90, 50), GUARD_STEP_BACK);
    ck_assert_uint_eq(guard.cap, 200);
    ck_assert(slower > 2.2 && slower < 2.3);
}
END_TEST

/* Each lacks one sign. */
static const struct {
    const char *what;
    size_t slots;
    int64_t us;
    unsigned hits, faults;
} harmless[] = {
    {"no more slots", 205, 90000, 90, 50},
    {"fewer hits: another text", 400, 90000, 70, 50},
    {"hardly slower", 400, 45000, 90, 50},
    {"no faults: the cores are busy, or the context is long", 400, 90000, 90, 1},
};

START_TEST(one_sign_less_is_no_cliff)
{
    run(GUARD_WINDOW, 200, 40000, 80, 0);
    ck_assert_msg(run(8 * GUARD_WINDOW, harmless[_i].slots, harmless[_i].us, harmless[_i].hits,
                      harmless[_i].faults) == GUARD_STAY,
                  "%s", harmless[_i].what);
    ck_assert_uint_eq(guard.cap, 0);
}
END_TEST

START_TEST(a_cap_ends_and_lasts_twice_as_long_the_next_time)
{
    for (unsigned round = 0; round < 3; round++) {
        unsigned rest = GUARD_REST << round;

        run(GUARD_WINDOW, 200, 40000, 80, 0);
        ck_assert_int_eq(run(GUARD_WINDOW, 400, 90000, 90, 50), GUARD_STEP_BACK);
        ck_assert_int_eq(run(rest - 1, 200, 40000, 80, 0), GUARD_STAY);
        ck_assert_uint_eq(guard.cap, 200);
        ck_assert_int_eq(run(1, 200, 40000, 80, 0), GUARD_TRY_AGAIN);
        ck_assert_uint_eq(guard.cap, 0);
    }
}
END_TEST

START_TEST(a_budget_that_was_cut_begins_anew)
{
    run(GUARD_WINDOW, 400, 30000, 90, 0);
    run(GUARD_WINDOW, 100, 60000, 50, 0); /* slower, with less: no wonder */
    ck_assert_int_eq(run(GUARD_WINDOW, 400, 70000, 90, 50), GUARD_STAY);
    ck_assert_int_eq(run(GUARD_WINDOW, 400, 90000, 90, 50), GUARD_STEP_BACK);
    ck_assert_uint_eq(guard.cap, 100);
}
END_TEST

TCase *tcase_memory_guard(void)
{
    TCase *tc = tcase_create("guard");

    tcase_add_checked_fixture(tc, set_up, NULL);
    tcase_add_test(
        tc, a_larger_cache_with_faults_and_slower_tokens_steps_back_to_the_best_that_was_seen);
    tcase_add_loop_test(tc, one_sign_less_is_no_cliff, 0, ARRAY_LEN(harmless));
    tcase_add_test(tc, a_cap_ends_and_lasts_twice_as_long_the_next_time);
    tcase_add_test(tc, a_budget_that_was_cut_begins_anew);
    return tc;
}
