/*
 * work - what goes from LOOP to ENGINE (or IO) and comes back: requests that
 * compute, and jobs that load, unload, plan, show, measure or set the budget.
 *
 * A work item is made in LOOP, posted down once, belongs to the thread it was
 * posted to, and comes back up inside its last letter, in which LOOP frees it.
 * Between the two LOOP may only set cancel and read the published counters.
 */
#pragma once

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/mailbox.h"
#include "daemon/engine/engine.h"
#include "daemon/engine/room.h"
#include "daemon/model/model.h"

struct outlook;
struct verify;
struct slot;

enum work_kind {
    WORK_REQUEST,
    WORK_LOAD,
    WORK_BENCH,
    WORK_UNLOAD,
    WORK_BUDGET,
    WORK_CACHE,
    WORK_PLAN,
    WORK_SHOW,
    WORK_VERIFY
};

struct work {
    struct letter letter; /* first: posted as it is */
    enum work_kind kind;
    uint64_t id;
    struct slot *slot; /* NULL: BUDGET, and files that PLAN, SHOW and VERIFY are given by path */
    _Atomic bool cancel;
    const char *why; /* ENGINE: the sentence of a cancel that was not the caller's; else NULL */
    int64_t arrived_ms;
    unsigned passed;   /* ENGINE: how often one that came later was taken first */
    struct work *next; /* ENGINE: in the queue */
};

/* A request on its way. */
struct task {
    struct work work; /* first */
    struct request
        *req;        /* never changed after submit, but for its bytes, which ENGINE may add to */
    char model[128]; /* the name it asked for, resolved */
    int64_t submitted_us;
    /* Published by ENGINE, read by LOOP for engine_requests. */
    _Atomic int stat_step;
    _Atomic size_t stat_prompt, stat_done;
    _Atomic unsigned stat_order; /* 0: running; else the place in the queue */
};

struct job {
    struct work work; /* first */
    char *target;     /* path or name as given */
    char *name;       /* the slot's, for the answer */
    char *kv;         /* NULL: as configured */
    size_t n_ctx;
    int64_t ttl_ms; /* −1: as configured */
    int pin;        /* −1: as configured */
    bool force;
    enum budget_force may_go;  /* BUDGET */
    size_t ram_bytes;          /* BUDGET; PLAN: 0 means the present one */
    size_t was_bytes;          /* BUDGET: the one before */
    size_t n_unloaded;         /* BUDGET: models that have left for it */
    struct room_offers offers; /* PLAN: what the budget has free, and others could give */
    struct model_others others;
    struct bench_spec bench;
    struct outlook *outlook;   /* PLAN: what ENGINE needs to say how fast it will be */
    struct verify *verify;     /* VERIFY: how far it is */
    struct ledger *charged_to; /* SHOW: the answer, as a request's, until it is handed on */
    size_t charged_bytes;
    bool map, experts, curve; /* CACHE */
    size_t from;              /* CACHE: the first layer of map and experts */
    char *trace;              /* CACHE: a file to record to, "" to end it; NULL: as it is */
};

struct task *task_create(struct request *take_request, struct slot *slot, const char *model);
void task_destroy(struct task *t);
struct job *job_create(enum work_kind kind, struct slot *slot, const char *target);
void job_destroy(struct job *j);

static inline struct task *task_of(struct work *w)
{
    return (struct task *)w;
}

static inline struct job *job_of(struct work *w)
{
    return (struct job *)w;
}

static inline bool work_cancelled(const struct work *w)
{
    return atomic_load_explicit(&w->cancel, memory_order_relaxed);
}
