/*
 * thread - the four roles a thread can have, and the check that a function
 * runs in the one it belongs to.
 *
 *   LOOP    sockets, timers, signals; never computes, never waits
 *   ENGINE  models, sequences, graphs, sampler; one thread
 *   TEAM    compute threads; never allocate, log or fail
 *   IO      reads in flight
 *
 * A thread without a role (tests, tools) passes every check.
 */
#pragma once

#include <pthread.h>
#include <sched.h>

enum thread_role { THREAD_NONE, THREAD_LOOP, THREAD_ENGINE, THREAD_TEAM, THREAD_IO };

/* Gives the calling thread its role and its name (as top and gdb show it, ≤ 15 bytes). */
void thread_take_role(enum thread_role role, const char *name);
enum thread_role thread_role(void);

/* A thread with all signals blocked and free of the caller's pins.  Returns 0 or an errno value. */
int thread_start(pthread_t *ret_thread, void *(*run)(void *), void *arg);

/*
 * Keeps the calling thread to these processors, until as many thread_unpin() as thread_pin()
 * have been called.  thread_usable() is what the thread may use without its pins.  A refusal by
 * the system is no error: where a thread runs is a matter of speed alone.
 */
void thread_pin(const cpu_set_t *place);
void thread_unpin(void);
int thread_usable(cpu_set_t *ret_usable);

#ifdef NDEBUG
#define thread_assert(role) ((void)0)
#else
void thread_assert(enum thread_role role);
#endif
