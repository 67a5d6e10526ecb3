/*
 * team - the compute threads: one dispatch, barriers inside it, sleep between.
 *
 * The caller is thread 0 and the others wait for it; team_run() gives every
 * thread the same function and returns when all have come back from it.
 * Inside, team_barrier() holds each thread until all have arrived.  A waiting
 * thread spins for some hundred microseconds and then sleeps on a futex, so an
 * idle team costs nothing and more threads than cores still make progress.
 *
 * Threads keep to physical cores of the affinity mask: to any of them while
 * there are more cores than threads, so that another process on one core pushes
 * them to an idle one; else each to its own.  The caller is pinned like the
 * others from its first run to the end of the team: left alone, a read that
 * ends wakes it on the core of a thread that it then waits for (a quarter of
 * the tokens a second of a mixture that streams).
 *
 * Thread: run and destroy from one thread (ENGINE); barrier from
 * within a running function.  Nothing here allocates, locks or logs but
 * create and destroy.
 */
#pragma once

#include <sched.h>
#include <stddef.h>

#include "common/err.h"

#define TEAM_THREADS_MAX 256

struct team;

typedef void team_fn(void *arg, unsigned thread);

int team_create(unsigned threads, struct team **ret_team, struct err *err);
void team_destroy(struct team *t);
unsigned team_threads(const struct team *t);
void team_run(struct team *t, team_fn *fn, void *arg);
void team_barrier(struct team *t);

/*
 * Where a thread of a team may run: on any of the cores (one processor of each
 * physical core) while there are more of them than threads; else on a core,
 * then a sibling, of its own; anywhere usable with more threads than processors.
 */
void team_place(const cpu_set_t *usable, const cpu_set_t *cores, unsigned threads, unsigned thread,
                cpu_set_t *ret_place);

/* The part [*ret_from, *ret_to) of n that falls to one of n_threads, cut at multiples of unit. */
static inline void team_share(size_t n, size_t unit, unsigned thread, unsigned n_threads,
                              size_t *ret_from, size_t *ret_to)
{
    size_t units = (n + unit - 1) / unit;
    size_t from = units * thread / n_threads * unit;
    size_t to = units * (thread + 1) / n_threads * unit;

    *ret_from = from < n ? from : n;
    *ret_to = to < n ? to : n;
}
