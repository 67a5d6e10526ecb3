/* Where the kernel's stall figures come from, and what is given up and taken back for them. */
#include <check.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/memory/pressure.h"
#include "tests/support/scratch.h"

TCase *tcase_memory_pressure(void);

#define MIB ((size_t)1 << 20)

static const char *root;
static struct pressure_state state;
static struct pressure_input in;

static void set_up(void)
{
    root = scratch_make();
    state = (struct pressure_state){0};
    in = (struct pressure_input){.now_ms = 1000000,
                                 .budget_bytes = 1600 * MIB,
                                 .used_bytes = 1600 * MIB,
                                 .floor_bytes = 500 * MIB,
                                 .sample.available = -1};
}

static void tear_down(void)
{
    ck_assert_int_eq(scratch_remove(), 0);
}

static void put(const char *name, const char *text)
{
    char *path = file_join(root, name);
    char *dir = xstrdup(path);
    struct err err = {0};

    *strrchr(dir, '/') = '\0';
    ck_assert_msg(file_make_dirs(dir, 0755, &err) >= 0, "%s", err.text);
    ck_assert_msg(file_replace(path, text, strlen(text), 0644, &err) >= 0, "%s", err.text);
    free(dir);
    free(path);
}

static const char quiet[] = "some avg10=0.00 avg60=0.00 avg300=0.00 total=11\n"
                            "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n";
static const char busy[] = "some avg10=43.21 avg60=5.00 avg300=1.00 total=123456\n"
                           "full avg10=12.50 avg60=2.00 avg300=0.50 total=65432\n";

START_TEST(the_own_cgroup_comes_before_the_machine)
{
    struct pressure_source source;
    struct pressure_sample s;
    struct err err = {0};

    put("proc/pressure/memory", quiet);
    put("proc/self/mountinfo",
        "30 25 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n");
    put("proc/self/cgroup", "0::/system.slice/rnbd.service\n");
    ck_assert_int_eq(pressure_open(root, &source, &err), 0);
    ck_assert_ptr_nonnull(strstr(source.path, "/proc/pressure/memory"));
    ck_assert_int_eq(pressure_sample(&source, &s, &err), 0);
    ck_assert_uint_eq(s.some_us, 11);
    ck_assert_double_lt(s.available, 0); /* there is no meminfo */
    put("proc/meminfo", "MemTotal:  1000 kB\nMemFree: 1 kB\nMemAvailable:  250 kB\n");
    ck_assert_int_eq(pressure_sample(&source, &s, &err), 0);
    ck_assert_double_eq_tol(s.available, 0.25, 1e-9);

    put("sys/fs/cgroup/system.slice/rnbd.service/memory.pressure", busy);
    ck_assert_int_eq(pressure_open(root, &source, &err), 0);
    ck_assert_ptr_nonnull(
        strstr(source.path, "/proc/pressure/memory")); /* a group without a limit */
    put("sys/fs/cgroup/system.slice/rnbd.service/memory.max", "max\n");
    ck_assert_int_eq(pressure_open(root, &source, &err), 0);
    ck_assert_ptr_nonnull(strstr(source.path, "/rnbd.service/memory.pressure"));
    ck_assert_int_eq(pressure_sample(&source, &s, &err), 0);
    ck_assert_double_eq_tol(s.some_avg10, 43.21, 1e-9);
    ck_assert_double_eq_tol(s.full_avg10, 12.5, 1e-9);
    ck_assert_uint_eq(s.some_us, 123456);
    ck_assert_uint_eq(s.full_us, 65432);
    ck_assert_double_lt(s.available, 0); /* the group's limit is what is short */
}
END_TEST

START_TEST(a_kernel_without_figures_is_an_error_with_its_reason)
{
    struct pressure_source source;
    struct err err = {0};

    ck_assert_int_eq(pressure_open(root, &source, &err), -ERR_UNSUPPORTED);
    ck_assert_ptr_nonnull(strstr(err.text, "PSI"));
}
END_TEST

static const char *const nonsense[] = {"", "some", "some avg10=x avg60=0 avg300=0 total=1",
                                       "some avg10=1.00 avg60=0.00 avg300=0.00 total=5\nfull avg10",
                                       "full avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"};

START_TEST(what_is_no_pressure_file_is_refused)
{
    struct pressure_sample s;
    struct err err = {0};

    ck_assert_int_eq(pressure_parse(nonsense[_i], &s, &err), -ERR_FORMAT);
}
END_TEST

/* A second in which tasks waited for these shares of it. */
static struct pressure_decision second_of(double some, double full)
{
    struct pressure_decision d;

    in.now_ms += 1000;
    in.sample.some_us += (uint64_t)(some * 10000);
    in.sample.full_us += (uint64_t)(full * 10000);
    pressure_decide(&state, &in, &d);
    if (in.used_bytes > d.effective_bytes)
        in.used_bytes = d.effective_bytes; /* the cache gives it back */
    ck_assert_uint_le(d.effective_bytes, in.budget_bytes);
    return d;
}

START_TEST(what_was_waited_before_the_first_sample_is_nothing)
{
    in.sample.some_us = 1000000000;
    ck_assert_int_eq(second_of(0, 0).verdict, PRESSURE_STAY);
    ck_assert_uint_eq(second_of(0, 0).effective_bytes, in.budget_bytes);
}
END_TEST

START_TEST(stalls_lower_the_budget_in_steps_down_to_the_floor_and_not_below)
{
    struct pressure_decision d;
    size_t before = in.budget_bytes;
    int steps = 0;

    second_of(0, 0);
    d = second_of(40, 0);
    ck_assert_int_eq(d.verdict, PRESSURE_LOWER);
    ck_assert_uint_eq(d.effective_bytes, 1500 * MIB);
    ck_assert_double_eq_tol(d.stalled, 40, 0.01);
    ck_assert_int_eq(second_of(40, 0).verdict, PRESSURE_STAY); /* the step shows first */
    for (int i = 0; i < 60; i++) {
        d = second_of(0, 10);
        steps += d.verdict == PRESSURE_LOWER;
        ck_assert_uint_le(d.effective_bytes, before);
        ck_assert_uint_ge(d.effective_bytes, in.floor_bytes);
        before = d.effective_bytes;
    }
    ck_assert_uint_eq(before, in.floor_bytes);
    ck_assert_int_eq(steps, 10);
}
END_TEST

START_TEST(a_step_begins_at_what_is_held_not_at_what_was_allowed)
{
    second_of(0, 0);
    in.used_bytes = 900 * MIB;
    ck_assert_uint_eq(second_of(50, 0).effective_bytes, 800 * MIB);
}
END_TEST

START_TEST(calm_gives_it_back_more_slowly_than_it_was_taken)
{
    struct pressure_decision d = {0};
    int seconds = 0, given = 0;

    second_of(0, 0);
    for (int i = 0; i < 5; i++)
        d = second_of(40, 0);
    ck_assert_uint_eq(d.effective_bytes, 1300 * MIB);
    for (; d.effective_bytes < in.budget_bytes && seconds < 1000; seconds++) {
        d = second_of(0.2, 0);
        given += d.verdict == PRESSURE_GIVE_BACK;
        if (seconds < 29)
            ck_assert_int_eq(d.verdict, PRESSURE_STAY);
    }
    ck_assert_int_eq(given, 3);
    ck_assert_int_ge(seconds, 50);
    ck_assert_int_le(seconds, 60);
    ck_assert_uint_eq(state.lowered_bytes, 0);
}
END_TEST

START_TEST(a_little_waiting_keeps_things_as_they_are)
{
    struct pressure_decision d;

    second_of(0, 0);
    d = second_of(40, 0);
    for (int i = 0; i < 200; i++)
        ck_assert_int_eq(second_of(5, 1).verdict, PRESSURE_STAY);
    ck_assert_uint_eq(second_of(5, 1).effective_bytes, d.effective_bytes);
}
END_TEST

START_TEST(nothing_is_lowered_when_there_is_nothing_to_give_back)
{
    second_of(0, 0);
    in.used_bytes = in.floor_bytes = 0;
    for (int i = 0; i < 20; i++)
        ck_assert_uint_eq(second_of(100, 90).effective_bytes, 1600 * MIB);
    in.used_bytes = 900 * MIB; /* all of it cache: a quarter of the budget stays */
    for (int i = 0; i < 60; i++)
        second_of(100, 90);
    ck_assert_uint_eq(second_of(100, 90).effective_bytes, 400 * MIB);
}
END_TEST

START_TEST(who_waits_within_a_limit_of_its_own_lowers_nobody_elses_budget)
{
    second_of(0, 0);
    in.sample.available = 0.6;
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(second_of(100, 90).verdict, PRESSURE_STAY);
    in.sample.available = 0.05;
    ck_assert_int_eq(second_of(100, 90).verdict, PRESSURE_LOWER);
}
END_TEST

START_TEST(a_lower_budget_or_a_higher_floor_leaves_less_to_take)
{
    struct pressure_decision d = {0};

    second_of(0, 0);
    for (int i = 0; i < 40; i++)
        d = second_of(40, 0);
    ck_assert_uint_eq(d.effective_bytes, in.floor_bytes);
    in.budget_bytes = 600 * MIB;
    ck_assert_uint_ge(second_of(0, 0).effective_bytes, 500 * MIB);
    in.floor_bytes = 700 * MIB; /* above the budget: it was loaded before the budget fell */
    ck_assert_uint_eq(second_of(40, 0).effective_bytes, 600 * MIB);
    in.budget_bytes = 1600 * MIB;
    ck_assert_uint_ge(second_of(40, 0).effective_bytes, 700 * MIB);
}
END_TEST

TCase *tcase_memory_pressure(void)
{
    TCase *tc = tcase_create("pressure");

    tcase_add_checked_fixture(tc, set_up, tear_down);
    tcase_add_test(tc, the_own_cgroup_comes_before_the_machine);
    tcase_add_test(tc, a_kernel_without_figures_is_an_error_with_its_reason);
    tcase_add_loop_test(tc, what_is_no_pressure_file_is_refused, 0, ARRAY_LEN(nonsense));
    tcase_add_test(tc, what_was_waited_before_the_first_sample_is_nothing);
    tcase_add_test(tc, stalls_lower_the_budget_in_steps_down_to_the_floor_and_not_below);
    tcase_add_test(tc, a_step_begins_at_what_is_held_not_at_what_was_allowed);
    tcase_add_test(tc, calm_gives_it_back_more_slowly_than_it_was_taken);
    tcase_add_test(tc, a_little_waiting_keeps_things_as_they_are);
    tcase_add_test(tc, nothing_is_lowered_when_there_is_nothing_to_give_back);
    tcase_add_test(tc, who_waits_within_a_limit_of_its_own_lowers_nobody_elses_budget);
    tcase_add_test(tc, a_lower_budget_or_a_higher_floor_leaves_less_to_take);
    return tc;
}
