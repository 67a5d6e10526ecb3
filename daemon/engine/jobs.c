/* Jobs that ENGINE does: load, unload, budget; see engine_priv.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/units.h"
#include "daemon/engine/engine_priv.h"

/* How often requests that arrive may get ahead of a budget that is being lowered. */
#define LOWER_TRIES 8

static void fail(struct engine *e, struct job *take_job, const struct err *err)
{
    events_job_done(e, take_job, NULL, err);
}

/* -- load --------------------------------------------------------------------------------------- */

/* The terms of this load: what the caller said, else what is configured. */
static int set_terms(struct slot *s, const struct job *j, struct err *err)
{
    const struct format *kv = j->kv ? names_kv_format(j->kv, NULL) : NULL;

    if (!s->model) {
        s->terms = s->configured;
        if (j->n_ctx)
            s->terms.n_ctx = j->n_ctx;
        if (kv)
            s->terms.kv = kv;
    } else if (j->n_ctx && j->n_ctx != model_n_ctx(s->model)) {
        return err_set_param(err, ERR_CONFLICT, "ctx",
                             "'%.100s' is loaded with a context of %zu; unload it first to change "
                             "that to %zu",
                             s->name, model_n_ctx(s->model), j->n_ctx);
    } else if (kv && kv != (s->terms.kv ? s->terms.kv : format_of(FORMAT_f16))) {
        return err_set_param(err, ERR_CONFLICT, "kv",
                             "'%.100s' is loaded with a %s cache; unload it first to change that "
                             "to %s",
                             s->name, s->terms.kv ? s->terms.kv->name : "f16", kv->name);
    }
    return 0;
}

static void set_stay(struct slot *s, const struct job *j)
{
    s->keep_alive_ms = INT64_MIN;
    if (j->ttl_ms >= 0)
        s->terms.ttl_ms = j->ttl_ms;
    if (j->pin >= 0)
        s->terms.pin = j->pin != 0;
}

void jobs_run_load(struct engine *e, struct job *take_job)
{
    struct slot *s = take_job->work.slot;
    int64_t began_ms = clock_ms();
    bool was_ready = slot_ready(s);
    struct err err;
    int r = set_terms(s, take_job, &err);

    if (r >= 0)
        r = loader_take(e, &take_job->work, &err);
    if (r < 0) {
        fail(e, take_job, &err);
        return;
    }
    set_stay(s, take_job);
    loader_give_back(e, &take_job->work);
    events_job_done(e, take_job,
                    json_pack("{s:s, s:s, s:I, s:I, s:b, s:I}", "model", s->name, "path", s->path,
                              "n_ctx", (json_int_t)(s->model ? model_n_ctx(s->model) : 0), "bytes",
                              (json_int_t)slot_held_bytes(s), "was_loaded", was_ready, "load_ms",
                              (json_int_t)(clock_ms() - began_ms)),
                    NULL);
}

/* -- unload ---------------------------------------------------------------------------------------- */

static void unloaded(struct engine *e, struct slot *s, struct job *take_job)
{
    size_t bytes = slot_held_bytes(s);

    if (s->model)
        loader_unload(e, s, "unloaded by hand");
    budget_grow(e);
    events_job_done(e, take_job,
                    json_pack("{s:s, s:I}", "model", s->name, "bytes", (json_int_t)bytes), NULL);
}

void jobs_unload(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct job *j = job_of((struct work *)l);
    struct slot *s = j->work.slot;
    bool busy = s->users > 0 || queue_wants(&e->worker.queue, s);
    struct err err;

    if (!s->model && s->state != MODEL_LOADING) {
        err_set_param(&err, ERR_CONFLICT, "model", "'%.100s' is not loaded", s->name);
        fail(e, j, &err);
    } else if (s->leaving) {
        err_set_param(&err, ERR_CONFLICT, "model", "'%.100s' is being unloaded already", s->name);
        fail(e, j, &err);
    } else if (busy && !j->force) {
        err_set_param(&err, ERR_CONFLICT, "model",
                      "'%.100s' is busy; wait for its requests, cancel them, or unload with force",
                      s->name);
        fail(e, j, &err);
    } else {
        /* Set before the cancels: who ends last on this model lets it leave. */
        s->leaving = j;
        worker_cancel_all_of(e, s, "its model was unloaded by force");
        if (s->users == 0)
            jobs_finish_leaving(e, s);
        else if (s->model)
            slot_set_state(&e->catalog, s, MODEL_DRAINING);
    }
}

void jobs_finish_leaving(struct engine *e, struct slot *s)
{
    struct job *j = s->leaving;

    s->leaving = NULL;
    unloaded(e, s, j);
}

/* -- budget ------------------------------------------------------------------------------------------ */

void jobs_budget_done(struct engine *e, struct job *take_job, size_t n_unloaded)
{
    struct ledger_report r;

    ledger_report(e->opt.ledger, POOL_RAM, &r);
    events_job_done(e, take_job,
                    json_pack("{s:I, s:I, s:I, s:I, s:I}", "ram", (json_int_t)r.budget, "was",
                              (json_int_t)take_job->was_bytes, "used", (json_int_t)r.used,
                              "capacity", (json_int_t)r.capacity, "unloaded",
                              (json_int_t)n_unloaded),
                    NULL);
}

/* Idle models leave, if that is enough with what the others can give back; nobody leaves in vain. */
static size_t make_idle_leave(struct engine *e, size_t to)
{
    size_t n = 0, used = ledger_used(e->opt.ledger, POOL_RAM);
    struct slot *victim;

    if (used - MIN(used, budget_obtainable_bytes(e, NULL)) > to)
        return 0;
    while (used - MIN(used, budget_spare_bytes(e)) > to &&
           (victim = catalog_victim(&e->catalog, NULL))) {
        loader_unload(e, victim, "the budget was lowered");
        n++;
        used = ledger_used(e->opt.ledger, POOL_RAM);
    }
    return n;
}

/* A model that is being read cannot be cut: what it holds, and the least to read it with instead. */
struct reading {
    size_t held, least; /* 0: nothing is being read */
};

static struct reading reading_below(const struct engine *e, const struct job *j)
{
    size_t used = ledger_used(e->opt.ledger, POOL_RAM);
    size_t spare =
        j->may_go == BUDGET_KEEP ? budget_spare_bytes(e) : budget_obtainable_bytes(e, NULL);
    struct reading r = {.held = loader_held_bytes(e)};
    size_t rest = used - MIN(used, r.held + spare);

    if (r.held)
        r.least = loader_least_bytes(e, j->ram_bytes - MIN(j->ram_bytes, rest));
    return r;
}

static int below_floor(struct engine *e, size_t to, struct reading reading, struct err *err)
{
    size_t used = ledger_used(e->opt.ledger, POOL_RAM);
    size_t floor = used - MIN(used, budget_spare_bytes(e) + reading.held) + reading.least;
    char want[24], least[24];

    if (floor <= to)
        return 0;
    /* the ledger has written the sum per account */
    snprintf(err->text, sizeof err->text,
             "a budget of %s is below the %s that what is loaded needs at least; unload a model or "
             "choose at least that",
             units_format_size(to, want, sizeof want),
             units_format_size_up(floor, least, sizeof least));
    return -ERR_CONFLICT;
}

/*
 * Ends what runs, for its model to leave after it: only where that would do, and
 * a pinned model stays.  The job goes on when it has ended.
 */
static bool end_running(struct engine *e, struct job *j)
{
    struct work *w = e->worker.running;
    size_t used = ledger_used(e->opt.ledger, POOL_RAM);
    size_t goes = budget_obtainable_bytes(e, NULL);

    if (j->may_go != BUDGET_RUNNING || !w || !w->slot || w->slot->terms.pin || e->worker.budget)
        return false;
    goes += w->slot->model ? slot_held_bytes(w->slot) - slot_spare_bytes(w->slot)
                           : loader_held_bytes(e);
    if (used - MIN(used, goes) > j->ram_bytes)
        return false;
    e->worker.budget = j;
    worker_cancel_all_of(e, w->slot, "the memory budget was lowered below what its model needs");
    return true;
}

/*
 * Models give back until the budget is as low as that.  Requests arrive meanwhile on LOOP and are
 * charged under the budget that still holds, so what there is to give back may grow by them.
 */
static int lower(struct engine *e, size_t to, struct err *err)
{
    int r = -ERR_CONFLICT;

    for (int i = 0; i < LOWER_TRIES && r == -ERR_CONFLICT; i++) {
        size_t used = ledger_used(e->opt.ledger, POOL_RAM);

        budget_shrink(e, used - MIN(used, to));
        r = ledger_set_budget(e->opt.ledger, POOL_RAM, to, err);
        if (r == -ERR_CONFLICT && below_floor(e, to, (struct reading){0}, err) < 0)
            break;
    }
    return r;
}

/* What is being read is given up; the budget is set when it is gone, and then it is read anew. */
static void read_anew(struct engine *e, struct job *j, size_t aim)
{
    size_t used = ledger_used(e->opt.ledger, POOL_RAM);

    budget_shrink(e, used - MIN(used, aim));
    e->worker.budget = j;
    loader_begin_again(e);
}

static bool wait_behind(struct engine *e, struct job *j)
{
    struct work *w = e->worker.budget ? &e->worker.budget->work : NULL;

    while (w && w->next)
        w = w->next;
    if (w)
        w->next = &j->work;
    return w != NULL;
}

void jobs_budget(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct job *j = job_of((struct work *)l);
    const struct work *running;
    struct err err;
    int r;

    if (wait_behind(e, j))
        return;
    running = e->worker.running;
    j->was_bytes = ledger_budget(e->opt.ledger, POOL_RAM);
    r = ledger_set_budget(e->opt.ledger, POOL_RAM, j->ram_bytes, &err);
    if (r == -ERR_CONFLICT && running && running->kind == WORK_PLAN) {
        e->worker.budget = j; /* its buffers are gone in a moment */
        return;
    }
    if (r == -ERR_CONFLICT) {
        struct reading reading = reading_below(e, j);
        /* What may be used before what is being read has gone. */
        size_t aim = j->ram_bytes + reading.held - MIN(j->ram_bytes + reading.held, reading.least);

        if (j->may_go != BUDGET_KEEP)
            j->n_unloaded += make_idle_leave(e, aim);
        r = below_floor(e, j->ram_bytes, reading, &err);
        if (r < 0 && end_running(e, j))
            return;
        if (r >= 0 && reading.held) {
            read_anew(e, j, aim);
            return;
        }
        if (r >= 0)
            r = lower(e, j->ram_bytes, &err);
    }
    if (r < 0) {
        fail(e, j, &err);
        return;
    }
    jobs_budget_done(e, j, j->n_unloaded);
    budget_grow(e); /* one that waited may be a higher one */
}

void jobs_budget_resume(struct engine *e)
{
    struct work *w = e->worker.budget ? &e->worker.budget->work : NULL, *next;

    e->worker.budget = NULL;
    for (; w; w = next) {
        next = w->next;
        w->next = NULL;
        jobs_budget(&w->letter, e);
    }
}
