/* Roles of threads. */
#include <check.h>
#include <signal.h>
#include <stdint.h>

#include "common/thread.h"

static void *with_role(void *arg)
{
    char name[32];

    if (thread_role() != THREAD_NONE)
        return NULL;
    thread_take_role(THREAD_ENGINE, "a-name-longer-than-15-bytes");
    pthread_getname_np(pthread_self(), name, sizeof name);
    ck_assert_str_eq(name, "a-name-longer-t");
    thread_assert(THREAD_ENGINE);
    *(enum thread_role *)arg = thread_role();
    return arg;
}

START_TEST(a_role_belongs_to_one_thread)
{
    enum thread_role seen = THREAD_NONE;
    pthread_t thread;
    void *result;

    ck_assert_int_eq(thread_start(&thread, with_role, &seen), 0);
    pthread_join(thread, &result);
    ck_assert_ptr_eq(result, &seen);
    ck_assert_int_eq(seen, THREAD_ENGINE);
    ck_assert_int_eq(thread_role(), THREAD_NONE);
}
END_TEST

static void *blocked(void *arg)
{
    sigset_t *set = arg;

    pthread_sigmask(SIG_SETMASK, NULL, set);
    return NULL;
}

START_TEST(a_new_thread_takes_no_signals_and_the_old_one_still_does)
{
    sigset_t theirs, before, after;
    pthread_t thread;

    pthread_sigmask(SIG_SETMASK, NULL, &before);
    ck_assert_int_eq(thread_start(&thread, blocked, &theirs), 0);
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    ck_assert_int_eq(sigismember(&theirs, SIGTERM), 1);
    ck_assert_int_eq(sigismember(&theirs, SIGHUP), 1);
    ck_assert_int_eq(sigismember(&after, SIGTERM), sigismember(&before, SIGTERM));
}
END_TEST

START_TEST(a_thread_without_a_role_passes_every_check)
{
    thread_assert(THREAD_LOOP);
    thread_assert(THREAD_TEAM);
    ck_assert_int_eq(thread_role(), THREAD_NONE);
}
END_TEST

START_TEST(the_wrong_thread_is_stopped)
{
    thread_take_role(THREAD_LOOP, "loop");
    thread_assert(THREAD_LOOP);
    thread_assert(THREAD_ENGINE);
}
END_TEST

static void *note_affinity(void *arg)
{
    sched_getaffinity(0, sizeof(cpu_set_t), arg);
    return NULL;
}

START_TEST(pins_nest_and_threads_that_are_started_do_not_inherit_them)
{
    cpu_set_t before, first, seen, now;
    pthread_t thread;
    int cpu = 0;

    ck_assert_int_eq(sched_getaffinity(0, sizeof(before), &before), 0);
    while (!CPU_ISSET(cpu, &before))
        cpu++;
    CPU_ZERO(&first);
    CPU_SET(cpu, &first);
    thread_pin(&first);
    thread_pin(&first);
    ck_assert_int_eq(thread_usable(&seen), 0);
    ck_assert(CPU_EQUAL(&seen, &before));
    ck_assert_int_eq(thread_start(&thread, note_affinity, &seen), 0);
    pthread_join(thread, NULL);
    ck_assert(CPU_EQUAL(&seen, &before));
    thread_unpin();
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert(CPU_EQUAL(&now, &first));
    thread_unpin();
    thread_unpin();
    ck_assert_int_eq(sched_getaffinity(0, sizeof(now), &now), 0);
    ck_assert(CPU_EQUAL(&now, &before));
}
END_TEST

TCase *tcase_common_thread(void);
TCase *tcase_common_thread(void)
{
    TCase *tc = tcase_create("thread");

    tcase_add_test(tc, a_role_belongs_to_one_thread);
    tcase_add_test(tc, a_new_thread_takes_no_signals_and_the_old_one_still_does);
    tcase_add_test(tc, a_thread_without_a_role_passes_every_check);
    tcase_add_test(tc, pins_nest_and_threads_that_are_started_do_not_inherit_them);
    tcase_add_test_raise_signal(tc, the_wrong_thread_is_stopped, SIGABRT);
    return tc;
}
