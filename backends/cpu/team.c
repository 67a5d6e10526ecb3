/* Compute threads, their barrier and their cores; see team.h. */
#include "backends/cpu/team.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/cpu/cpuid.h"
#include "common/alloc.h"
#include "common/thread.h"

/*
 * Pauses before a waiting thread sleeps: some 0.2 to 0.5 ms, longer than the tail of any region
 * and several times what a wake takes; else one thread that wakes late sends the next to sleep,
 * and so on through the token.
 */
#define SPIN_PAUSES 10000
/* With more threads than cores the one that is waited for may need this core. */
#define SPIN_PAUSES_OVER 20

/* A number that only grows, with threads asleep on it: each on a cache line of its own. */
struct gate {
    _Alignas(64) _Atomic uint32_t value;
    _Alignas(64) _Atomic uint32_t sleepers;
};

struct member {
    struct team *team;
    unsigned id;
    cpu_set_t place; /* empty: anywhere */
    pthread_t thread;
};

struct team {
    unsigned n;
    unsigned n_started; /* members[1 … n_started] run */
    unsigned spin;
    bool pinned; /* the caller, at its first run: it need not be the thread that creates the team */
    team_fn *fn; /* NULL: leave */
    void *arg;
    struct member *members;
    struct gate job;     /* one more for each dispatch */
    struct gate barrier; /* one more for each time that all have arrived */
    _Alignas(64) _Atomic uint32_t arrived;
};

static inline void cpu_relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb" ::: "memory");
#endif
}

/* FUTEX_WAIT compares again in the kernel, so a wake between our look and our sleep is not lost. */
static void gate_wait(struct gate *g, uint32_t old, unsigned spin)
{
    for (unsigned i = 0; i < spin; i++) {
        if (atomic_load_explicit(&g->value, memory_order_acquire) != old)
            return;
        cpu_relax();
    }
    atomic_fetch_add(&g->sleepers, 1);
    while (atomic_load(&g->value) == old)
        syscall(SYS_futex, &g->value, FUTEX_WAIT_PRIVATE, old, NULL, NULL, 0);
    atomic_fetch_sub(&g->sleepers, 1);
}

/* Both sides are sequentially consistent: either we see the sleeper or it sees the new value. */
static void gate_open(struct gate *g)
{
    atomic_fetch_add(&g->value, 1);
    if (atomic_load(&g->sleepers))
        syscall(SYS_futex, &g->value, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

void team_barrier(struct team *t)
{
    uint32_t old;

    if (t->n == 1)
        return;
    /* Read before arriving: after the last arrival the value may change at once. */
    old = atomic_load_explicit(&t->barrier.value, memory_order_acquire);
    if (atomic_fetch_add_explicit(&t->arrived, 1, memory_order_acq_rel) + 1 < t->n) {
        gate_wait(&t->barrier, old, t->spin);
        return;
    }
    atomic_store_explicit(&t->arrived, 0, memory_order_relaxed);
    gate_open(&t->barrier);
}

static void *member_run(void *arg)
{
    struct member *m = arg;
    struct team *t = m->team;
    char name[16];

    snprintf(name, sizeof(name), "team-%u", m->id);
    thread_take_role(THREAD_TEAM, name);
    if (CPU_COUNT(&m->place))
        thread_pin(&m->place);
    for (uint32_t job = 0;; job++) {
        gate_wait(&t->job, job, t->spin);
        if (!t->fn)
            return NULL;
        t->fn(t->arg, m->id);
        team_barrier(t);
    }
}

void team_place(const cpu_set_t *usable, const cpu_set_t *cores, unsigned threads, unsigned thread,
                cpu_set_t *ret_place)
{
    unsigned at = 0;

    *ret_place = threads < (unsigned)CPU_COUNT(cores) ? *cores : *usable;
    if (threads < (unsigned)CPU_COUNT(cores) || threads > (unsigned)CPU_COUNT(usable))
        return;
    CPU_ZERO(ret_place);
    for (int sibling = 0; sibling < 2; sibling++)
        for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
            if (CPU_ISSET(cpu, usable) &&
                (sibling ? !CPU_ISSET(cpu, cores) : CPU_ISSET(cpu, cores)) && at++ == thread)
                CPU_SET(cpu, ret_place);
}

/* Places for all members; how many processors there are. */
static unsigned choose_places(struct team *t)
{
    cpu_set_t usable, cores;

    CPU_ZERO(&cores);
    if (thread_usable(&usable) < 0)
        return 0;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &usable) && cpu_is_core(cpu, &usable, sizeof(usable)))
            CPU_SET(cpu, &cores);
    for (unsigned i = 0; i < t->n; i++)
        team_place(&usable, &cores, t->n, i, &t->members[i].place);
    return (unsigned)CPU_COUNT(&usable);
}

int team_create(unsigned threads, struct team **ret_team, struct err *err)
{
    struct team *t;

    if (threads < 1 || threads > TEAM_THREADS_MAX)
        return err_set(err, ERR_INVALID, "threads is %u; give a number from 1 to %d", threads,
                       TEAM_THREADS_MAX);
    t = aligned_alloc(64, (sizeof(*t) + 63) / 64 * 64);
    if (!t)
        return err_set(err, ERR_NOMEM, "no memory for the compute threads; free some and retry");
    *t = (struct team){.n = threads};
    t->members = XNEW_ARRAY(struct member, threads);
    t->spin = choose_places(t) >= threads ? SPIN_PAUSES : SPIN_PAUSES_OVER;

    for (unsigned i = 1; i < threads; i++) {
        int e;

        t->members[i].team = t;
        t->members[i].id = i;
        e = thread_start(&t->members[i].thread, member_run, &t->members[i]);
        if (e) {
            team_destroy(t);
            return err_set_errno(err, ERR_INTERNAL, e, "cannot start compute thread %u of %u", i,
                                 threads);
        }
        t->n_started = i;
    }
    *ret_team = t;
    return 0;
}

void team_destroy(struct team *t)
{
    if (!t)
        return;
    t->fn = NULL;
    gate_open(&t->job);
    for (unsigned i = 1; i <= t->n_started; i++)
        pthread_join(t->members[i].thread, NULL);
    if (t->pinned)
        thread_unpin();
    free(t->members);
    free(t);
}

unsigned team_threads(const struct team *t)
{
    return t->n;
}

void team_run(struct team *t, team_fn *fn, void *arg)
{
    if (t->n == 1) {
        fn(arg, 0);
        return;
    }
    if (!t->pinned && CPU_COUNT(&t->members[0].place)) {
        thread_pin(&t->members[0].place);
        t->pinned = true;
    }
    t->fn = fn;
    t->arg = arg;
    gate_open(&t->job);
    fn(arg, 0);
    team_barrier(t);
}
