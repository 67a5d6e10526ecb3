/*
 * The ENGINE thread: takes the next work, and leads a request through its
 * steps.  Read this first; each step is a file of its own.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/units.h"
#include "daemon/engine/run.h"

/* Nothing to do for so long is the end of a run of requests. */
#define QUIET_MS 1000

/* Addresses alone until they are used; each block is below what malloc maps by itself. */
#define STOCK_BYTES  ((size_t)2 << 20)
#define STOCK_BLOCKS 32

/* Answers are charged for by so much. */
#define ANSWER_STEP ((size_t)16 << 10)

void worker_alive(struct engine *e)
{
    atomic_store_explicit(&e->stat_alive_ms, clock_ms(), memory_order_relaxed);
}

/* -- mail -------------------------------------------------------------------------------- */

void worker_take(struct letter *l, void *engine)
{
    struct engine *e = engine;

    queue_add(&e->worker.queue, (struct work *)l);
}

/* Ends what waits, or what never came to run. */
static void end_waiting(struct engine *e, struct work *w, const struct err *err)
{
    if (w->kind == WORK_REQUEST)
        worker_end_request(e, task_of(w), NULL, -(int)err->kind, err);
    else
        events_job_done(e, job_of(w), NULL, err);
}

static void fail_overdue(struct engine *e)
{
    struct queue *q = &e->worker.queue;
    struct work *w;
    struct err err;
    char waited[24];

    while ((w = queue_overdue(q, e->opt.queue_wait_ms, clock_ms()))) {
        queue_remove(q, w);
        err_set(&err, ERR_TIMEOUT, "the request waited %s in the queue; try again later",
                units_format_time_ms(clock_ms() - w->arrived_ms, waited, sizeof waited));
        end_waiting(e, w, &err);
    }
}

void worker_read_mail(struct engine *e)
{
    struct letter *l;

    while (mailbox_has(e->inbox) && (l = mailbox_take(e->inbox)))
        l->deliver(l, e);
    fail_overdue(e);
    if (e->worker.running) /* or the loop does it, which also asks when to look again */
        loader_expire(e, clock_ms());
}

/* A load goes on when somebody else waits for the model. */
static void stop_load_of(struct engine *e, struct slot *s)
{
    if (s && s->state == MODEL_LOADING && !queue_wants(&e->worker.queue, s))
        atomic_store(&s->cancel_load, true);
}

void worker_cancel(struct engine *e, uint64_t id)
{
    struct work *running = e->worker.running;
    struct work *w = queue_find(&e->worker.queue, id);
    struct err err;

    if (running && running->id == id) {
        stop_load_of(e, running->slot);
    } else if (w) {
        queue_remove(&e->worker.queue, w);
        err_set(&err, ERR_CANCELLED, "the request was cancelled while it waited");
        end_waiting(e, w, &err);
        if (running && work_cancelled(running))
            stop_load_of(e, running->slot);
    }
}

void worker_cancel_all_of(struct engine *e, const struct slot *s, const char *why)
{
    struct work *running = e->worker.running, *w, *next;
    struct err err;

    for (w = e->worker.queue.first; w; w = next) {
        next = w->next;
        if (w->slot != s)
            continue;
        queue_remove(&e->worker.queue, w);
        err_set(&err, ERR_CANCELLED, "%s", why);
        end_waiting(e, w, &err);
    }
    if (running && running->slot == s) {
        running->why = why;
        atomic_store_explicit(&running->cancel, true, memory_order_relaxed);
        stop_load_of(e, running->slot);
    }
}

/* -- the end of a request -------------------------------------------------------------------- */

static void count(struct engine *e, const struct task *t, const struct run *run, int r)
{
    struct engine_stats *s = &e->stats;

    pthread_mutex_lock(&e->stats_lock);
    if (r >= 0)
        s->requests_done++;
    else if (r == -ERR_CANCELLED)
        s->requests_cancelled++;
    else
        s->requests_failed++;
    if (run) {
        s->prompt_tokens += run->usage.prompt_tokens;
        s->cached_tokens += run->usage.cached_tokens;
        s->completion_tokens += run->usage.completion_tokens;
        s->prefill_seconds += (double)run->prefill_us / 1e6;
        s->decode_seconds += (double)run->decode_us / 1e6;
        s->queue_seconds += run->timings.queue_ms / 1e3;
        s->bytes_read += run->timings.bytes_read;
        s->bytes_wanted += run->timings.bytes_wanted;
        s->expert_uses += run->timings.uses;
        s->expert_hits += run->timings.hits;
        s->wait_seconds += run->timings.wait_ms / 1e3;
    } else {
        s->queue_seconds += (double)(clock_us() - t->submitted_us) / 1e6;
    }
    pthread_mutex_unlock(&e->stats_lock);
}

static void write_log(const struct task *t, const struct run *run, int r, const struct err *err)
{
    const struct request_usage none = {0}, *u = run ? &run->usage : &none;
    double ms = (double)(clock_us() - t->submitted_us) / 1000;
    const char *client = t->req->client;

    if (r < 0)
        log_info("request ended",
                 "id=%llu model='%s' client='%s' after=%.0fms prompt=%zu "
                 "completion=%zu %s: %s",
                 (unsigned long long)t->work.id, t->model, client, ms, u->prompt_tokens,
                 u->completion_tokens, err_name(r), err->text);
    else
        log_info("request done",
                 "id=%llu model='%s' client='%s' took=%.0fms ttft=%.0fms prompt=%zu cached=%zu "
                 "completion=%zu pp=%.1f/s tg=%.1f/s",
                 (unsigned long long)t->work.id, t->model, client, ms, run->timings.ttft_ms,
                 u->prompt_tokens, u->cached_tokens, u->completion_tokens, run->timings.pp_per_s,
                 run->timings.tg_per_s);
}

void worker_end_request(struct engine *e, struct task *t, const struct run *run, int r,
                        const struct err *err)
{
    struct event ev = {.kind = r < 0 ? EVENT_FAILED : EVENT_DONE, .error = r < 0 ? err : NULL};

    if (run) {
        ev.usage = run->usage;
        ev.timings = run->timings;
        ev.sampling = &run->sampling;
    }
    atomic_store_explicit(&t->stat_step,
                          r >= 0                ? STEP_DONE
                          : r == -ERR_CANCELLED ? STEP_CANCELLED
                                                : STEP_FAILED,
                          memory_order_relaxed);
    count(e, t, run, r);
    write_log(t, run, r, err);
    events_post_last(e, t, &ev);
}

/* -- a request, step by step ------------------------------------------------------------------- */

int run_charge(struct run *r, enum account account, size_t bytes, struct err *err)
{
    struct engine *e = r->e;
    char who[48];
    int rc;

    snprintf(who, sizeof who, "request %llu", (unsigned long long)r->task->work.id);
    rc = ledger_reserve(e->opt.ledger, POOL_RAM, account, bytes, who, err);
    if (rc == -ERR_NOMEM && budget_find(e, bytes, "a request needs its memory"))
        rc = ledger_reserve(e->opt.ledger, POOL_RAM, account, bytes, who, err);
    if (rc >= 0)
        *(account == ACCOUNT_SCRATCH ? &r->charged_scratch : &r->charged_requests) += bytes;
    return rc;
}

int run_charge_answer(struct run *r, size_t bytes, struct err *err)
{
    size_t more = bytes - MIN(bytes, r->charged_answer);
    int rc;

    if (!more)
        return 0;
    more = (more + ANSWER_STEP - 1) / ANSWER_STEP * ANSWER_STEP;
    rc = run_charge(r, ACCOUNT_REQUESTS, more, err);
    if (rc >= 0) {
        r->charged_requests -= more;
        r->charged_answer += more;
        r->task->req->bytes += more;
    }
    return rc;
}

int run_cancelled(const struct run *r, struct err *err)
{
    const struct work *w = &r->task->work;

    if (!work_cancelled(w))
        return 0;
    return err_set(err, ERR_CANCELLED, "%s", w->why ? w->why : "the request was cancelled");
}

void run_step(struct run *r, enum request_step step)
{
    atomic_store_explicit(&r->task->stat_step, (int)step, memory_order_relaxed);
    atomic_store_explicit(&r->task->stat_done, 0, memory_order_relaxed);
}

static int run_choices(struct run *r, struct err *err)
{
    struct event started = {.kind = EVENT_STARTED};
    int rc = 0;

    events_post(r->e, r->task, &started);
    for (r->choice = 0; r->choice < r->req->n && rc >= 0; r->choice++) {
        run_step(r, STEP_PREFILLING);
        if (r->max_tokens > 0)
            rc = prefill_prompt(r, err);
        if (rc < 0)
            break;
        run_step(r, STEP_DECODING);
        rc = decode_choice(r, err);
    }
    return rc;
}

/* Rates, and what is remembered of them with the model. */
static void measure(struct run *r)
{
    struct slot *s = r->task->work.slot;
    struct request_timings *t = &r->timings;
    struct residency_stats rs;

    residency_settle(model_weights(r->model)); /* what it has read ahead is its own */
    model_residency(r->model, &rs);
    t->bytes_read = rs.bytes_read - r->before.bytes_read;
    t->bytes_wanted = rs.wanted_bytes - r->before.wanted_bytes;
    t->uses = rs.uses - r->before.uses;
    t->hits = rs.hits - r->before.hits;
    t->wait_ms = (double)(rs.wait_us - r->before.wait_us) / 1000;
    t->prefill_ms = (double)r->prefill_us / 1000;
    t->decode_ms = (double)r->decode_us / 1000;
    if (r->prefill_us > 0)
        t->pp_per_s = (double)r->computed_tokens * 1e6 / (double)r->prefill_us;
    if (r->decode_us > 0)
        t->tg_per_s = (double)r->decoded_tokens * 1e6 / (double)r->decode_us;
    if (r->computed_tokens > 1)
        s->pp_per_s = t->pp_per_s;
    if (r->decoded_tokens)
        s->tg_per_s = t->tg_per_s;
}

/* With its model in memory. */
static int run_on_model(struct run *r, struct err *err)
{
    int rc;

    model_residency(r->model, &r->before);
    /* A model that this request has loaded was read for it. */
    if (r->timings.load_ms > 0)
        r->before.bytes_read = 0;
    run_step(r, STEP_PREPARING);
    model_info(r->model, &r->info);
    r->tokenizer = model_tokenizer(r->model);
    if (r->req->kind == REQUEST_EMBEDDING) {
        rc = embed_inputs(r, err);
    } else {
        rc = prepare_request(r, err);
        if (rc >= 0)
            rc = run_choices(r, err);
    }
    /* Between two layers the executor does not know whose wish it was. */
    if (rc == -ERR_CANCELLED)
        run_cancelled(r, err);
    measure(r);
    prepare_clear(r);
    return rc;
}

static void run_request(struct engine *e, struct task *t)
{
    struct run *r = XNEW(struct run);
    struct slot *s = t->work.slot;
    int64_t began_us = clock_us();
    bool was_ready = slot_ready(s);
    struct err err;
    int rc;

    r->e = e;
    r->task = t;
    r->req = t->req;
    r->sampling = t->req->sampling;
    r->timings.queue_ms = (double)(began_us - t->submitted_us) / 1000;
    atomic_store_explicit(&t->stat_order, 0, memory_order_relaxed);
    if (!was_ready)
        run_step(r, STEP_LOADING);
    rc = loader_take(e, &t->work, &err);
    if (rc >= 0) {
        if (!was_ready)
            r->timings.load_ms = (double)(clock_us() - began_us) / 1000;
        r->model = s->model;
        rc = run_on_model(r, &err);
        if (t->req->keep_alive_ms != INT64_MIN)
            s->keep_alive_ms = t->req->keep_alive_ms;
        loader_give_back(e, &t->work);
    }
    worker_end_request(e, t, r, rc, &err);
    free(r);
}

void worker_run(struct engine *e, struct work *w)
{
    enum work_kind kind = w->kind;

    e->worker.running = w;
    worker_alive(e);
    switch (w->kind) {
    case WORK_REQUEST: run_request(e, task_of(w)); break;
    case WORK_LOAD: jobs_run_load(e, job_of(w)); break;
    case WORK_PLAN: jobs_run_plan(e, job_of(w)); break;
    default: bench_run(e, job_of(w)); break;
    }
    e->worker.running = NULL;
    if (kind != WORK_PLAN)
        e->worker.ended_ms = clock_ms();
    jobs_budget_resume(e);
    budget_tell_spare(e);
    reader_sample_rss(e); /* work changes it most: who looks next sees what is now */
    if (kind == WORK_PLAN)
        jobs_next_plan(e);
}

/* -- the thread ---------------------------------------------------------------------------------- */

/*
 * What was taken for a request comes back when it is over, but not between two of
 * somebody who asks one thing after another: each would take it again.  Returns
 * when to look again.
 */
static int64_t give_back(struct engine *e)
{
    int64_t at_ms = e->worker.ended_ms + QUIET_MS;

    if (!e->worker.taken)
        return INT64_MAX;
    if (clock_ms() < at_ms)
        return at_ms;
    e->worker.taken = false;
    budget_grow(e);
    return INT64_MAX;
}

static void wait_for_work(struct engine *e, int64_t until_ms)
{
    int64_t left = until_ms == INT64_MAX ? -1 : MAX(until_ms - clock_ms(), 0);

    atomic_store_explicit(&e->stat_alive_ms, INT64_MAX, memory_order_relaxed);
    mailbox_wait(e->inbox, (int)MIN(left, (int64_t)INT_MAX));
    worker_alive(e);
}

static void stop(struct engine *e)
{
    struct work *w;
    struct err err;

    err_set(&err, ERR_SHUTDOWN, "rnbd is stopping");
    while ((w = e->worker.queue.first)) {
        queue_remove(&e->worker.queue, w);
        end_waiting(e, w, &err);
    }
    for (struct slot *s = e->catalog.first; s; s = s->next)
        if (s->model)
            loader_unload(e, s, "rnbd is stopping");
}

/* What a token needs then finds a place in the heap without asking the kernel. */
static void stock_heap(void)
{
    void *blocks[STOCK_BLOCKS];

    for (size_t i = 0; i < STOCK_BLOCKS; i++)
        blocks[i] = xmalloc(STOCK_BYTES / STOCK_BLOCKS);
    for (size_t i = 0; i < STOCK_BLOCKS; i++)
        free(blocks[i]);
}

void *worker_thread(void *engine)
{
    struct engine *e = engine;

    thread_take_role(THREAD_ENGINE, "rnbd-engine");
    stock_heap();
    for (;;) {
        int64_t next_ms;
        struct work *w;

        worker_read_mail(e);
        if (e->worker.stop)
            break;
        next_ms = loader_expire(e, clock_ms());
        w = queue_next(&e->worker.queue, slot_ready);
        if (w)
            worker_run(e, w);
        else
            wait_for_work(e, MIN(next_ms, give_back(e)));
    }
    stop(e);
    return NULL;
}
