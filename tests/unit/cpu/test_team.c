/* The compute threads: everyone works, everyone waits, no one is lost. */
#include <check.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

#include "backends/cpu/team.h"

TCase *tcase_cpu_team(void);

#define ROUNDS 3000

struct count {
    struct team *team;
    _Atomic unsigned in, torn;
    _Atomic unsigned calls[TEAM_THREADS_MAX];
    unsigned plain; /* written by one thread a round, read by all the next */
};

static struct team *team_of(unsigned n)
{
    struct team *t = NULL;
    struct err err;

    ck_assert_msg(team_create(n, &t, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(team_threads(t), n);
    return t;
}

static void call_once(void *arg, unsigned thread)
{
    struct count *c = arg;

    atomic_fetch_add(&c->calls[thread], 1);
}

START_TEST(every_thread_is_called_once_a_run)
{
    struct count c = {.team = team_of((unsigned)_i)};

    for (unsigned r = 0; r < 500; r++)
        team_run(c.team, call_once, &c);
    for (int t = 0; t < _i; t++)
        ck_assert_uint_eq(c.calls[t], 500);
    team_destroy(c.team);
}
END_TEST

static void meet(void *arg, unsigned thread)
{
    struct count *c = arg;
    unsigned n = team_threads(c->team);

    for (unsigned r = 0; r < ROUNDS; r++) {
        atomic_fetch_add(&c->in, 1);
        if (r % n == thread)
            c->plain++;
        team_barrier(c->team);
        if (atomic_load(&c->in) != (r + 1) * n || c->plain != r + 1)
            atomic_fetch_add(&c->torn, 1);
        team_barrier(c->team);
    }
}

/* Three threads on two cores must sleep on each other, five do so more. */
START_TEST(nobody_passes_a_barrier_before_all_are_there)
{
    struct count c = {.team = team_of((unsigned)_i)};

    team_run(c.team, meet, &c);
    ck_assert_uint_eq(c.torn, 0);
    ck_assert_uint_eq(c.plain, ROUNDS);
    team_destroy(c.team);
}
END_TEST

/* Four cores of two hardware threads each: 0 … 3, and their siblings 4 … 7. */
static cpu_set_t place_of(unsigned threads, unsigned thread)
{
    cpu_set_t usable, cores, place;

    CPU_ZERO(&usable);
    CPU_ZERO(&cores);
    for (int cpu = 0; cpu < 8; cpu++)
        CPU_SET(cpu, &usable);
    for (int cpu = 0; cpu < 4; cpu++)
        CPU_SET(cpu, &cores);
    team_place(&usable, &cores, threads, thread, &place);
    return place;
}

START_TEST(threads_move_among_cores_while_some_are_spare)
{
    cpu_set_t place = place_of(3, 1);

    ck_assert_int_eq(CPU_COUNT(&place), 4);
    ck_assert(CPU_ISSET(3, &place) && !CPU_ISSET(4, &place));
}
END_TEST

START_TEST(as_many_threads_as_cores_have_one_each_and_siblings_come_last)
{
    for (unsigned threads = 4; threads <= 8; threads++)
        for (unsigned thread = 0; thread < threads; thread++) {
            cpu_set_t place = place_of(threads, thread);

            ck_assert_int_eq(CPU_COUNT(&place), 1);
            ck_assert(CPU_ISSET(thread, &place));
        }
}
END_TEST

START_TEST(more_threads_than_processors_go_anywhere)
{
    cpu_set_t place = place_of(9, 8);

    ck_assert_int_eq(CPU_COUNT(&place), 8);
}
END_TEST

/* Longer than the spin: the team is asleep when the next run comes. */
START_TEST(a_team_that_sleeps_wakes_for_the_next_run)
{
    struct count c = {.team = team_of(3)};

    for (unsigned r = 0; r < 20; r++) {
        usleep(2000);
        team_run(c.team, call_once, &c);
    }
    ck_assert_uint_eq(c.calls[2], 20);
    team_destroy(c.team);
}
END_TEST

static void note_cores(void *arg, unsigned thread)
{
    struct count *c = arg;
    cpu_set_t set;

    sched_getaffinity(0, sizeof(set), &set);
    c->calls[thread] = (unsigned)CPU_COUNT(&set);
}

START_TEST(the_caller_has_a_place_until_the_team_ends)
{
    struct count c = {.team = team_of(2)}, other = {0};
    cpu_set_t before, after;

    sched_getaffinity(0, sizeof(before), &before);
    team_run(c.team, note_cores, &c);
    ck_assert_uint_eq(c.calls[0], c.calls[1]);
    /* A team beside it sees all processors, not those that its caller is kept to. */
    other.team = team_of(2);
    team_run(other.team, note_cores, &other);
    ck_assert_uint_eq(other.calls[1], c.calls[1]);
    team_destroy(other.team);
    team_destroy(c.team);
    sched_getaffinity(0, sizeof(after), &after);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

START_TEST(more_threads_than_cores_are_not_pinned)
{
    cpu_set_t set;
    struct count c = {0};
    unsigned n;

    sched_getaffinity(0, sizeof(set), &set);
    n = (unsigned)CPU_COUNT(&set) + 1;
    if (n > TEAM_THREADS_MAX)
        return;
    c.team = team_of(n);
    team_run(c.team, note_cores, &c);
    for (unsigned t = 0; t < n; t++)
        ck_assert_uint_eq(c.calls[t], n - 1);
    team_destroy(c.team);
}
END_TEST

START_TEST(an_impossible_number_of_threads_is_refused)
{
    struct team *t = NULL;
    struct err err;

    ck_assert_int_eq(team_create(0, &t, &err), -ERR_INVALID);
    ck_assert_int_eq(team_create(TEAM_THREADS_MAX + 1, &t, &err), -ERR_INVALID);
    ck_assert_ptr_null(t);
}
END_TEST

START_TEST(shares_cover_everything_once_in_whole_units)
{
    for (size_t n = 0; n < 200; n += 7)
        for (unsigned threads = 1; threads < 6; threads++) {
            size_t at = 0, from, to;

            for (unsigned t = 0; t < threads; t++) {
                team_share(n, 16, t, threads, &from, &to);
                ck_assert_uint_eq(from, at);
                ck_assert_uint_ge(to, from);
                ck_assert(to % 16 == 0 || to == n);
                at = to;
            }
            ck_assert_uint_eq(at, n);
        }
}
END_TEST

TCase *tcase_cpu_team(void)
{
    TCase *tc = tcase_create("team");

    tcase_add_loop_test(tc, every_thread_is_called_once_a_run, 1, 6);
    tcase_add_loop_test(tc, nobody_passes_a_barrier_before_all_are_there, 1, 6);
    tcase_add_test(tc, a_team_that_sleeps_wakes_for_the_next_run);
    tcase_add_test(tc, the_caller_has_a_place_until_the_team_ends);
    tcase_add_test(tc, more_threads_than_cores_are_not_pinned);
    tcase_add_test(tc, an_impossible_number_of_threads_is_refused);
    tcase_add_test(tc, shares_cover_everything_once_in_whole_units);
    tcase_add_test(tc, threads_move_among_cores_while_some_are_spare);
    tcase_add_test(tc, as_many_threads_as_cores_have_one_each_and_siblings_come_last);
    tcase_add_test(tc, more_threads_than_processors_go_anywhere);
    return tc;
}
