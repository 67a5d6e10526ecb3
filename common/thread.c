/* Thread roles and names; see thread.h. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/thread.h"

static _Thread_local enum thread_role own_role = THREAD_NONE;

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
    int errnum;

    /* Inherited: signals then only ever arrive at the thread that waits for them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errnum = pthread_create(ret_thread, NULL, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errnum;
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
