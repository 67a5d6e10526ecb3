/* The door: whom events go to, submit, cancel, reports; see engine.h.  Known models: names.c; jobs: calls.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/thread.h"
#include "daemon/engine/engine_priv.h"

/* How old the measured RSS may be before it is measured again. */
#define RSS_EVERY_MS 1000

/* -- start and stop ------------------------------------------------------------------------- */

int engine_create(const struct engine_options *opt, struct engine **ret, struct err *err)
{
    struct engine *e = XNEW(struct engine);
    int r, errnum;

    e->opt = *opt;
    if (e->opt.state_dir && !*e->opt.state_dir)
        e->opt.state_dir = NULL;
    e->inbox = mailbox_create();
    e->outbox = mailbox_create();
    catalog_init(&e->catalog);
    queue_init(&e->worker.queue);
    pthread_mutex_init(&e->stats_lock, NULL);
    atomic_init(&e->stat_alive_ms, clock_ms());
    r = reader_start(e, err);
    if (r < 0) {
        engine_destroy(e);
        return r;
    }
    errnum = thread_start(&e->thread, worker_thread, e);
    if (errnum) {
        engine_destroy(e);
        return err_set_errno(err, ERR_INTERNAL, errnum, "cannot start the engine's thread");
    }
    e->started = true;
    *ret = e;
    return 0;
}

void engine_drain(struct engine *e)
{
    thread_assert(THREAD_LOOP);
    e->draining = true;
    /* A file of any size may still have to be read: nothing waits for that. */
    for (size_t i = 0; i < e->n_jobs; i++)
        if (e->jobs[i].job->work.kind == WORK_VERIFY)
            atomic_store_explicit(&e->jobs[i].job->work.cancel, true, memory_order_relaxed);
}

bool engine_idle(const struct engine *e)
{
    return e->n_tickets == 0 && e->n_jobs == 0;
}

void engine_destroy(struct engine *e)
{
    struct letter *l;
    struct slot *s;

    if (!e)
        return;
    e->dying = true;
    for (size_t i = 0; i < e->n_tickets; i++)
        atomic_store(&e->tickets[i].task->work.cancel, true);
    for (size_t i = 0; i < e->n_jobs; i++)
        atomic_store(&e->jobs[i].job->work.cancel, true);
    if (e->started) {
        notes_stop(e);
        pthread_join(e->thread, NULL);
    }
    reader_stop(e);
    while ((l = mailbox_take(e->inbox))) /* plans that IO has made since */
        l->deliver(l, e);
    engine_dispatch(e);
    /* ENGINE has heard of every slot; those that were retired and buried came back by letter. */
    while ((s = e->catalog.first)) {
        catalog_remove(&e->catalog, s);
        slot_destroy(s);
    }
    catalog_clear(&e->catalog);
    mailbox_destroy(e->inbox);
    mailbox_destroy(e->outbox);
    pthread_mutex_destroy(&e->stats_lock);
    free(e->slots);
    free(e->tickets);
    free(e->jobs);
    free(e);
}

int engine_fd(const struct engine *e)
{
    return mailbox_fd(e->outbox);
}

void engine_dispatch(struct engine *e)
{
    struct letter *l;

    thread_assert(THREAD_LOOP);
    while ((l = mailbox_take(e->outbox)))
        l->deliver(l, e);
}

int64_t engine_heartbeat_ms(const struct engine *e)
{
    int64_t at = atomic_load_explicit(&e->stat_alive_ms, memory_order_relaxed);

    /* INT64_MAX: it waits for work. */
    return at == INT64_MAX ? clock_ms() : at;
}

uint64_t engine_next_id(struct engine *e)
{
    return ++e->last_id;
}

/* -- tickets --------------------------------------------------------------------------------- */

static struct ticket *find(const struct engine *e, uint64_t id)
{
    for (size_t i = 0; i < e->n_tickets; i++)
        if (e->tickets[i].task->work.id == id)
            return &e->tickets[i];
    return NULL;
}

const struct ticket *engine_ticket(const struct engine *e, uint64_t id)
{
    return find(e, id);
}

void engine_close_ticket(struct engine *e, uint64_t id)
{
    struct ticket *t = find(e, id);

    if (!t)
        return;
    e->n_tickets--;
    memmove(t, t + 1, (size_t)(e->tickets + e->n_tickets - t) * sizeof *t);
}

/* -- requests ---------------------------------------------------------------------------------- */

static int admit(struct engine *e, const struct request *r, struct slot **ret_slot, struct err *err)
{
    if (e->draining)
        return err_set(err, ERR_SHUTDOWN, "rnbd is stopping; it takes no more requests");
    /* One runs beside those that wait. */
    if (e->n_tickets > e->opt.queue_max)
        return err_set(err, ERR_BUSY, "%zu requests are waiting already; try again later",
                       e->opt.queue_max);
    if (r->n < 1)
        return err_set_param(err, ERR_INVALID, "n", "'n' must be at least 1");
    if (r->echo && r->logprobs)
        return err_set_param(err, ERR_INVALID, "echo",
                             "'echo' together with 'logprobs' is not supported; leave one out");
    return names_resolve(e, r->model, ret_slot, err);
}

int engine_submit(struct engine *e, struct request *take_request, event_fn *sink, void *arg,
                  uint64_t *ret_id, struct err *err)
{
    struct slot *slot = NULL;
    struct task *t;
    char who[96];
    int r;

    thread_assert(THREAD_LOOP);
    r = admit(e, take_request, &slot, err);
    if (r >= 0) {
        snprintf(who, sizeof who, "the request of %s",
                 *take_request->client ? take_request->client : "a client");
        r = ledger_reserve(e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, take_request->bytes, who,
                           err);
    }
    if (r < 0) {
        pthread_mutex_lock(&e->stats_lock);
        e->stats.requests_refused++;
        pthread_mutex_unlock(&e->stats_lock);
        request_destroy(take_request);
        return r;
    }
    t = task_create(take_request, slot, slot->name);
    t->work.id = engine_next_id(e);
    t->work.letter.deliver = worker_take;
    ARRAY_GROW(e->tickets, e->n_tickets + 1, e->cap_tickets);
    e->tickets[e->n_tickets++] = (struct ticket){.task = t, .sink = sink, .arg = arg};
    *ret_id = t->work.id;
    mailbox_post(e->inbox, &t->work.letter);
    return 0;
}

static void cancel(struct engine *e, struct ticket *t)
{
    atomic_store_explicit(&t->task->work.cancel, true, memory_order_relaxed);
    notes_cancel(e, t->task->work.id);
}

void engine_abandon(struct engine *e, uint64_t id)
{
    struct ticket *t;

    thread_assert(THREAD_LOOP);
    t = find(e, id);
    if (!t)
        return;
    t->sink = NULL;
    cancel(e, t);
}

int engine_cancel(struct engine *e, uint64_t id, struct err *err)
{
    struct ticket *t;

    thread_assert(THREAD_LOOP);
    t = find(e, id);
    if (!t || !t->sink)
        return err_set_param(err, ERR_NOT_FOUND, "id",
                             "there is no request %llu; it may have ended already",
                             (unsigned long long)id);
    cancel(e, t);
    return 0;
}

static unsigned order_of(const struct ticket *t)
{
    return atomic_load_explicit(&t->task->stat_order, memory_order_relaxed);
}

static int by_order(const void *a, const void *b)
{
    const struct ticket *x = *(struct ticket *const *)a, *y = *(struct ticket *const *)b;
    unsigned ox = order_of(x), oy = order_of(y);

    if (ox != oy)
        return ox < oy ? -1 : 1;
    return x->task->work.id < y->task->work.id ? -1 : x->task->work.id > y->task->work.id;
}

static void describe(const struct task *t, struct request_info *ret)
{
    *ret = (struct request_info){
        .id = t->work.id,
        .kind = t->req->kind,
        .step = (enum request_step)atomic_load_explicit(&t->stat_step, memory_order_relaxed),
        .prompt_tokens = atomic_load_explicit(&t->stat_prompt, memory_order_relaxed),
        .done_tokens = atomic_load_explicit(&t->stat_done, memory_order_relaxed),
        .age_ms = clock_ms() - t->work.arrived_ms,
    };
    memcpy(ret->model, t->model, sizeof ret->model);
    memcpy(ret->client, t->req->client, sizeof ret->client);
}

size_t engine_requests(const struct engine *e, struct request_info *ret_list, size_t cap)
{
    struct ticket **order;
    size_t n = e->n_tickets;

    thread_assert(THREAD_LOOP);
    if (n == 0 || cap == 0)
        return n;
    order = XNEW_ARRAY(struct ticket *, n);
    for (size_t i = 0; i < n; i++)
        order[i] = &e->tickets[i];
    qsort(order, n, sizeof(struct ticket *), by_order);
    for (size_t i = 0; i < n && i < cap; i++)
        describe(order[i]->task, &ret_list[i]);
    free(order);
    return n;
}

/* -- numbers -------------------------------------------------------------------------------------- */

void engine_stats(const struct engine *e, struct engine_stats *ret)
{
    pthread_mutex_t *lock = (pthread_mutex_t *)(uintptr_t)&e->stats_lock;

    thread_assert(THREAD_LOOP);
    pthread_mutex_lock(lock);
    *ret = e->stats;
    pthread_mutex_unlock(lock);
    ret->running = 0;
    for (size_t i = 0; i < e->n_tickets; i++)
        ret->running += order_of(&e->tickets[i]) == 0;
    ret->waiting = e->n_tickets - ret->running;
}

void engine_memory(const struct engine *e, enum pool pool, struct ledger_report *ret)
{
    ledger_report(e->opt.ledger, pool, ret);
}

size_t engine_rss_bytes(const struct engine *e)
{
    struct engine *asked = (struct engine *)(uintptr_t)e; /* only the time of asking changes */
    int64_t now = clock_ms();

    thread_assert(THREAD_LOOP);
    if (now - atomic_load_explicit(&e->stat_rss_asked_ms, memory_order_relaxed) >= RSS_EVERY_MS) {
        atomic_store_explicit(&asked->stat_rss_asked_ms, now, memory_order_relaxed);
        reader_sample_all(asked);
    }
    return atomic_load_explicit(&e->stat_rss_bytes, memory_order_relaxed);
}

size_t engine_page_cache_bytes(const struct engine *e)
{
    engine_rss_bytes(e); /* asks for a new sample when the last one is old */
    return atomic_load_explicit(&e->stat_page_cache_bytes, memory_order_relaxed);
}
