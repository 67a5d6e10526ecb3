/* Thread roles and names; see thread.h. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/thread.h"

static _Thread_local enum thread_role own_role = THREAD_NONE;
static _Thread_local unsigned own_pins;
static _Thread_local cpu_set_t unpinned; /* while own_pins > 0 */

void thread_take_role(enum thread_role role, const char *name)
{
    char cut[16];

    own_role = role;
    /* The kernel refuses a longer name instead of cutting it. */
    snprintf(cut, sizeof cut, "%s", name);
    pthread_setname_np(pthread_self(), cut);
}

enum thread_role thread_role(void)
{
    return own_role;
}

int thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg)
{
    sigset_t all, before;
    pthread_attr_t attr;
    int errnum = pthread_attr_init(&attr);

    if (errnum)
        return errnum;
    if (own_pins)
        (void)pthread_attr_setaffinity_np(&attr, sizeof(unpinned), &unpinned);
    /* Inherited: signals then only ever arrive at the thread that waits for them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(ret_thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return errnum;
}

int thread_usable(cpu_set_t *ret_usable)
{
    if (own_pins) {
        *ret_usable = unpinned;
        return 0;
    }
    return sched_getaffinity(0, sizeof(*ret_usable), ret_usable) < 0 ? -errno : 0;
}

void thread_pin(const cpu_set_t *place)
{
    if (own_pins == 0 && thread_usable(&unpinned) < 0)
        return;
    own_pins++;
    (void)sched_setaffinity(0, sizeof(*place), place);
}

void thread_unpin(void)
{
    if (own_pins > 0 && --own_pins == 0)
        (void)sched_setaffinity(0, sizeof(unpinned), &unpinned);
}

#ifndef NDEBUG
void thread_assert(enum thread_role role)
{
    static const char *const names[] = {"NONE", "LOOP", "ENGINE", "TEAM", "IO"};

    if (own_role == THREAD_NONE || own_role == role)
        return;
    fprintf(stderr, "rnbd: a function of thread %s was called in thread %s\n", names[role],
            names[own_role]);
    abort();
}
#endif
