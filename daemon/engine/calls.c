/* The jobs of the door: load, unload, plan, show, verify, bench, budget; see engine.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/thread.h"
#include "daemon/engine/engine_priv.h"

/* Unanswered jobs at once: a client that never reads its answers is refused, not served from memory without end. */
#define JOBS_MAX 64

#define BENCH_TOKENS_MAX  ((size_t)1 << 20)
#define BENCH_REPEATS_MAX 100

static struct job_ticket *find(const struct engine *e, uint64_t id)
{
    for (size_t i = 0; i < e->n_jobs; i++)
        if (e->jobs[i].job->work.id == id)
            return &e->jobs[i];
    return NULL;
}

const struct job_ticket *engine_job_ticket(const struct engine *e, uint64_t id)
{
    return find(e, id);
}

void engine_close_job(struct engine *e, uint64_t id)
{
    struct job_ticket *t = find(e, id);

    if (!t)
        return;
    e->n_jobs--;
    memmove(t, t + 1, (size_t)(e->jobs + e->n_jobs - t) * sizeof *t);
}

/* Gives the job its number and its place among those that are not answered yet. */
static int64_t open_job(struct engine *e, struct job *j, const struct job_sink *sink)
{
    j->work.id = engine_next_id(e);
    if (j->work.slot)
        j->name = xstrdup(j->work.slot->name);
    ARRAY_GROW(e->jobs, e->n_jobs + 1, e->cap_jobs);
    e->jobs[e->n_jobs++] = (struct job_ticket){.job = j, .sink = *sink};
    return (int64_t)j->work.id;
}

static int64_t post(struct engine *e, struct job *j, const struct job_sink *sink,
                    void (*deliver)(struct letter *l, void *engine))
{
    int64_t id = open_job(e, j, sink);

    j->work.letter.deliver = deliver;
    mailbox_post(e->inbox, &j->work.letter);
    return id;
}

static int admit(const struct engine *e, struct err *err)
{
    if (e->draining)
        return err_set(err, ERR_SHUTDOWN, "rnbd is stopping; it takes no more work");
    if (e->n_jobs >= JOBS_MAX)
        return err_set(err, ERR_BUSY, "%d control calls are at work already; try again later",
                       JOBS_MAX);
    return 0;
}

int64_t engine_load(struct engine *e, const struct load_spec *spec, const struct job_sink *sink,
                    struct err *err)
{
    struct slot *s;
    struct job *j;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r >= 0 && spec->kv && !names_kv_format(spec->kv, err))
        r = -ERR_INVALID;
    if (r >= 0)
        r = names_resolve_target(e, spec->target, spec->name, &s, err);
    if (r < 0)
        return r;
    j = job_create(WORK_LOAD, s, spec->target);
    j->n_ctx = spec->n_ctx;
    j->kv = xstrdup(spec->kv);
    j->ttl_ms = spec->ttl_ms;
    j->pin = spec->pin;
    return post(e, j, sink, worker_take);
}

int64_t engine_unload(struct engine *e, const char *name, bool force, const struct job_sink *sink,
                      struct err *err)
{
    struct slot *s;
    struct job *j;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r >= 0)
        r = names_resolve(e, name, &s, err);
    if (r < 0)
        return r;
    j = job_create(WORK_UNLOAD, s, name ? name : "");
    j->force = force;
    return post(e, j, sink, jobs_unload);
}

/* What the present budget has free for one more model, and who could give and who stays. */
static void look_at_others(struct engine *e, const struct slot *but, struct job *j)
{
    size_t budget = ledger_budget(e->opt.ledger, POOL_RAM), most;
    struct room_offers *o = &j->offers;

    o->free = ledger_free_bytes(e->opt.ledger, POOL_RAM);
    o->list = XNEW_ARRAY(struct slot_offer, e->n_slots);
    for (size_t i = 0; i < e->n_slots; i++) {
        struct slot_offer offer = slot_read_offer(&e->catalog, e->slots[i]);

        if (e->slots[i] == but) {
            o->free += offer.held; /* it would not stand beside itself */
            continue;
        }
        if (offer.held && !offer.leaves)
            model_others_add(&j->others, e->slots[i]->name, offer.held, offer.held - offer.spare);
        o->list[o->n++] = offer;
    }
    most = o->free + room_offered_bytes(o);
    j->others.bytes = budget - MIN(budget, most);
}

/* A job that only looks at a file; the slot's path is copied, for IO has nothing to do with slots. */
static struct job *file_job(struct engine *e, enum work_kind kind, const char *target)
{
    const struct slot *s = names_find(e, target);
    struct job *j = job_create(kind, NULL, s ? s->path : target);

    j->name = xstrdup(s ? s->name : target);
    return j;
}

int64_t engine_plan(struct engine *e, const char *target, size_t n_ctx, const char *kv, size_t ram,
                    const struct job_sink *sink, struct err *err)
{
    const struct slot *s;
    struct job *j;
    int64_t id;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r >= 0 && kv && !names_kv_format(kv, err))
        r = -ERR_INVALID;
    if (r < 0)
        return r;
    s = names_find(e, target);
    j = file_job(e, WORK_PLAN, target);
    /* As the configuration has it, unless the caller says otherwise. */
    j->kv = xstrdup(kv ? kv : s && s->asked.kv ? s->asked.kv->name : NULL);
    j->n_ctx = n_ctx ? n_ctx : s ? s->asked.n_ctx : 0;
    j->ram_bytes = ram;
    j->offers.free = ram;
    if (!ram)
        look_at_others(e, s, j);
    id = open_job(e, j, sink);
    reader_post(e, j);
    return id;
}

/* A job of IO that needs nothing but a file. */
static int64_t look(struct engine *e, enum work_kind kind, const char *target,
                    const struct job_sink *sink, struct err *err)
{
    struct job *j;
    int64_t id;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r < 0)
        return r;
    j = file_job(e, kind, target);
    id = open_job(e, j, sink);
    reader_post(e, j);
    return id;
}

int64_t engine_show(struct engine *e, const char *target, const struct job_sink *sink,
                    struct err *err)
{
    return look(e, WORK_SHOW, target, sink, err);
}

int64_t engine_verify(struct engine *e, const char *target, const struct job_sink *sink,
                      struct err *err)
{
    return look(e, WORK_VERIFY, target, sink, err);
}

static int check_bench(const struct bench_spec *spec, struct err *err)
{
    size_t most = MAX(spec->n_prompt, spec->n_gen);

    if (spec->n_depths == 0 || spec->n_depths > BENCH_DEPTHS_MAX)
        return err_set_param(err, ERR_INVALID, "depths", "'depths' must be 1 to %d numbers",
                             BENCH_DEPTHS_MAX);
    for (unsigned i = 0; i < spec->n_depths; i++)
        most = MAX(most, spec->depths[i]);
    if (most > BENCH_TOKENS_MAX)
        return err_set(err, ERR_INVALID, "a bench of more than %zu tokens is not possible",
                       BENCH_TOKENS_MAX);
    if (spec->n_prompt == 0 && spec->n_gen == 0)
        return err_set(err, ERR_INVALID,
                       "nothing to measure: give tokens of a prompt or tokens to generate");
    if (spec->repeats == 0 || spec->repeats > BENCH_REPEATS_MAX)
        return err_set_param(err, ERR_INVALID, "repeats", "'repeats' is %u; it must be 1 to %d",
                             spec->repeats, BENCH_REPEATS_MAX);
    return 0;
}

int64_t engine_bench(struct engine *e, const char *target, const struct bench_spec *spec,
                     const struct job_sink *sink, struct err *err)
{
    struct slot *s;
    struct job *j;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r >= 0)
        r = check_bench(spec, err);
    if (r >= 0)
        r = names_resolve_target(e, target, NULL, &s, err);
    if (r < 0)
        return r;
    j = job_create(WORK_BENCH, s, target);
    j->bench = *spec;
    return post(e, j, sink, worker_take);
}

int64_t engine_cache(struct engine *e, const char *name, const struct cache_ask *ask,
                     const struct job_sink *sink, struct err *err)
{
    struct slot *s;
    struct job *j;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r >= 0)
        r = names_resolve(e, name, &s, err);
    if (r < 0)
        return r;
    j = job_create(WORK_CACHE, s, "");
    j->map = ask->map;
    j->experts = ask->experts;
    j->curve = ask->curve;
    j->from = ask->from;
    j->trace = xstrdup(ask->trace);
    return post(e, j, sink, jobs_cache);
}

void engine_job_abandon(struct engine *e, int64_t job)
{
    struct job_ticket *t;

    thread_assert(THREAD_LOOP);
    t = find(e, (uint64_t)job);
    if (!t)
        return;
    t->abandoned = true;
    atomic_store_explicit(&t->job->work.cancel, true, memory_order_relaxed);
    notes_cancel(e, t->job->work.id);
}

bool engine_budget_waits(const struct engine *e, int64_t but)
{
    for (size_t i = 0; i < e->n_jobs; i++)
        if (e->jobs[i].job->work.kind == WORK_BUDGET && (int64_t)e->jobs[i].job->work.id != but)
            return true;
    return false;
}

int64_t engine_set_budget(struct engine *e, size_t ram_bytes, enum budget_force force,
                          const struct job_sink *sink, struct err *err)
{
    struct job *j;
    int64_t id;
    size_t was;
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, err);
    if (r < 0)
        return r;
    was = ledger_budget(e->opt.ledger, POOL_RAM);
    /* budgets are set in the order in which they were asked for */
    r = engine_budget_waits(e, 0) ? -ERR_CONFLICT
                                  : ledger_set_budget(e->opt.ledger, POOL_RAM, ram_bytes, err);
    if (r < 0 && r != -ERR_CONFLICT)
        return r;
    j = job_create(WORK_BUDGET, NULL, "");
    j->ram_bytes = ram_bytes;
    j->was_bytes = was;
    j->may_go = force;
    if (r < 0) /* or models have to give back: ENGINE's, at the end of a layer */
        return post(e, j, sink, jobs_budget);
    id = open_job(e, j, sink);
    jobs_budget_done(e, j, 0);
    notes_grow(e);
    return id;
}
