/* Bringing models into memory and letting them leave; see engine_priv.h. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/units.h"
#include "daemon/chat/chat.h"
#include "daemon/engine/engine_priv.h"
#include "daemon/engine/outlook.h"
#include "daemon/engine/room.h"

/* Progress goes up this often at most. */
#define PROGRESS_EVERY_MS 100

struct loading {
    struct engine *e;
    struct work *work;
    struct model *model;
    size_t budget; /* when it began */
    bool again;    /* it is broken off for a lower one */
    int64_t posted_ms;
};

static void on_progress(void *arg, size_t done, size_t total)
{
    struct loading *l = arg;
    struct slot *s = l->work->slot;
    int64_t now = clock_ms();

    worker_alive(l->e);
    worker_read_mail(l->e);
    if (l->e->worker.stop)
        atomic_store(&s->cancel_load, true);
    if (now - l->posted_ms < PROGRESS_EVERY_MS && done < total)
        return;
    l->posted_ms = now;
    s->progress = done;
    s->progress_total = total;
    slot_publish(&l->e->catalog, s);
    if (l->work->kind == WORK_REQUEST && task_of(l->work)->req->return_progress) {
        struct event ev = {
            .kind = EVENT_PROGRESS, .step = STEP_LOADING, .progress = done, .total = total};

        events_post(l->e, task_of(l->work), &ev);
    } else if (l->work->kind != WORK_REQUEST) {
        events_job_progress(l->e, job_of(l->work), "loading", done, total);
    }
}

/* Between two layers: a change of the budget does not wait for a token. */
static void on_tick(void *arg)
{
    worker_alive(arg);
    worker_read_mail(arg);
}

/* -- who gives for it, see room.h -- */

static size_t free_bytes(void *loading)
{
    const struct loading *l = loading;

    return ledger_free_bytes(l->e->opt.ledger, POOL_RAM) +
           model_held_bytes(l->model); /* its text */
}

static size_t caches(void *loading)
{
    return budget_cache_bytes(((const struct loading *)loading)->e);
}

static size_t spare(void *loading)
{
    return budget_spare_bytes(((const struct loading *)loading)->e);
}

static size_t most(void *loading)
{
    const struct loading *l = loading;

    return budget_obtainable_bytes(l->e, l->work->slot);
}

static void shrink_caches(void *loading, size_t bytes)
{
    budget_shrink_caches(((const struct loading *)loading)->e, bytes);
}

static void shrink(void *loading, size_t bytes)
{
    budget_shrink(((const struct loading *)loading)->e, bytes);
}

static bool leave(void *loading)
{
    const struct loading *l = loading;
    struct slot *victim = catalog_victim(&l->e->catalog, l->work->slot);

    if (victim) {
        l->e->worker.taken = true; /* it may have held more than is wanted */
        loader_unload(l->e, victim, "another model needs its memory");
    }
    return victim != NULL;
}

static const struct givers loaded_models = {.free = free_bytes,
                                            .caches = caches,
                                            .spare = spare,
                                            .most = most,
                                            .shrink_caches = shrink_caches,
                                            .shrink = shrink,
                                            .leave = leave};

static struct model_options options_of(const struct engine *e, const struct slot *s)
{
    return (struct model_options){.n_ctx = s->terms.n_ctx,
                                  .n_batch = e->opt.n_batch,
                                  .n_out = 1,
                                  .kv = s->terms.kv,
                                  .state_dir = e->opt.state_dir};
}

static int read_model(struct loading *l, struct err *err)
{
    struct engine *e = l->e;
    struct slot *s = l->work->slot;
    struct model_options o = options_of(e, s);
    struct model_others others;
    struct model_plan p;
    int r;

    budget_others(e, s, &others);
    others.bytes -= MIN(others.bytes, model_held_bytes(l->model)); /* its text */
    o.others = &others;
    l->budget = ledger_budget(e->opt.ledger, POOL_RAM);
    r = room_make(&e->opt, l->model, &o, &loaded_models, l, &p, err);
    if (r < 0)
        return r;
    if (!p.fits)
        return model_refuse(l->model, &p, err);
    o.n_ctx = p.n_ctx;
    e->worker.loading = l;
    r = model_load(l->model, &o, e->opt.ledger, e->opt.backend_ops, e->opt.backend, on_progress, l,
                   &s->cancel_load, err);
    e->worker.loading = NULL;
    if (r < 0)
        return r;
    model_set_tick(l->model, on_tick, e);
    return 0;
}

size_t loader_held_bytes(const struct engine *e)
{
    return e->worker.loading ? model_held_bytes(e->worker.loading->model) : 0;
}

size_t loader_least_bytes(const struct engine *e, size_t bytes)
{
    const struct loading *l = e->worker.loading;
    struct model_options o = options_of(e, l->work->slot);
    struct model_plan p;

    if (room_plan(&e->opt, l->model, &o, bytes, &p, NULL) < 0)
        return bytes + 1;
    return p.fits ? MIN(p.needs, bytes) : MAX(p.needs, bytes + 1);
}

void loader_begin_again(struct engine *e)
{
    e->worker.loading->again = true;
    atomic_store(&e->worker.loading->work->slot->cancel_load, true);
}

/*
 * The budget was lowered while the model was being read, by breaking that off or
 * before all of it was reserved: it is read into the lower one, if somebody still
 * wants it.
 */
static bool goes_on(struct loading *l, int r)
{
    struct engine *e = l->e;
    struct slot *s = l->work->slot;
    bool cut = r == -ERR_NOMEM && ledger_budget(e->opt.ledger, POOL_RAM) < l->budget;

    if (!(r == -ERR_CANCELLED && l->again) && !cut)
        return false;
    l->again = false;
    atomic_store(&s->cancel_load, false);
    s->progress = s->progress_total = 0;
    slot_publish(&e->catalog, s);
    jobs_budget_resume(e); /* which may cancel it */
    if (e->worker.stop || s->leaving ||
        (work_cancelled(l->work) && !queue_wants(&e->worker.queue, s)))
        return false;
    log_info("load begins again in a lower budget", "model='%s'", s->name);
    return true;
}

static int cancelled(const struct work *work, struct err *err)
{
    return err_set(err, ERR_CANCELLED, "%s",
                   work->why ? work->why : "the request was cancelled while its model was loading");
}

static void note_loaded(struct engine *e, struct slot *s, int64_t began_ms)
{
    char bytes[24], took[24];

    pthread_mutex_lock(&e->stats_lock);
    e->stats.loads++;
    pthread_mutex_unlock(&e->stats_lock);
    log_notice("loaded model", "model='%s' bytes=%s ctx=%zu in=%s", s->name,
               units_format_size(slot_held_bytes(s), bytes, sizeof bytes), model_n_ctx(s->model),
               units_format_time_ms(clock_ms() - began_ms, took, sizeof took));
}

/* What is wrong with a file is told by who knows the file alone: says which model that is. */
static void name_model(const struct slot *s, struct err *why)
{
    char text[sizeof why->text];

    snprintf(text, sizeof text, "cannot load '%.100s': %.390s", s->name, why->text);
    memcpy(why->text, text, sizeof text);
}

static bool make_room_for_text(void *engine, size_t bytes)
{
    return budget_lend(engine, bytes) ||
           budget_find(engine, bytes, "another model needs its memory");
}

static int open_model(struct loading *l, struct err *err)
{
    const struct slot *s = l->work->slot;
    char who[160];
    struct model_room room = {l->e->opt.ledger, who, make_room_for_text, l->e};
    int r;

    snprintf(who, sizeof who, "model '%.128s'", s->name);
    r = model_open_within(s->path, &room, &l->model, err);
    if (r < 0)
        name_model(s, err);
    else
        model_know_as(l->model, s->name);
    return r;
}

/* Who could have grown meanwhile does. */
static void end_load(struct engine *e)
{
    e->worker.loads = false;
    if (e->worker.grow)
        budget_grow(e);
}

static int load(struct engine *e, struct work *work, struct err *err)
{
    struct slot *s = work->slot;
    struct loading l = {.e = e, .work = work};
    int64_t began_ms = clock_ms();
    struct residency_stats loaded;
    struct err why;
    int r;

    atomic_store(&s->cancel_load, false);
    s->progress = s->progress_total = 0;
    slot_set_state(&e->catalog, s, MODEL_LOADING);
    e->worker.loads = true;
    budget_mark(e);
    r = open_model(&l, &why);
    if (r >= 0) {
        do
            r = read_model(&l, &why);
        while (goes_on(&l, r));
    }
    if (r < 0) {
        model_close(l.model);
        budget_restore(e);
        end_load(e);
        s->terms = s->configured;
        s->error = why;
        if (r == -ERR_CANCELLED) {
            slot_set_state(&e->catalog, s, MODEL_LISTED);
            return cancelled(work, err);
        }
        slot_set_state(&e->catalog, s, MODEL_FAILED);
        log_warning("cannot load model", "model='%s': %s", s->name, why.text);
        if (err)
            *err = why;
        return r;
    }
    s->model = l.model;
    model_residency(l.model, &loaded);
    s->loaded_as = loaded.placement;
    s->used_at_us = clock_us();
    s->keep_alive_ms = INT64_MIN;
    slot_set_state(&e->catalog, s, MODEL_READY);
    note_loaded(e, s, began_ms);
    end_load(e);
    if (l.again) /* all was read before that could be broken off: it can be cut now */
        jobs_budget_resume(e);
    return 0;
}

int loader_take(struct engine *e, struct work *work, struct err *err)
{
    struct slot *s = work->slot;
    int r = 0;

    if (work_cancelled(work))
        return cancelled(work, err);
    s->users++;
    if (!s->model)
        r = load(e, work, err);
    if (r >= 0 && work_cancelled(work))
        r = cancelled(work, err);
    if (r < 0) {
        loader_give_back(e, work);
        return r;
    }
    slot_publish(&e->catalog, s);
    return 0;
}

void loader_give_back(struct engine *e, struct work *work)
{
    struct slot *s = work->slot;

    s->users--;
    if (s->model)
        residency_settle(model_weights(s->model));
    s->used_at_us = clock_us();
    slot_publish(&e->catalog, s);
    if (s->users == 0 && s->leaving)
        jobs_finish_leaving(e, s);
}

void loader_unload(struct engine *e, struct slot *s, const char *why)
{
    char bytes[24], idle[24];
    int64_t idle_ms = (clock_us() - s->used_at_us) / 1000;
    size_t held = slot_held_bytes(s);

    slot_set_state(&e->catalog, s, MODEL_DRAINING);
    chat_template_destroy(s->chat);
    ledger_release(e->opt.ledger, POOL_RAM, ACCOUNT_TEXT, s->chat_bytes);
    s->chat = NULL;
    s->chat_bytes = 0;
    outlook_remember(e, s);
    model_close(s->model);
    s->model = NULL;
    malloc_trim(0); /* what small blocks of a text left between others */
    log_notice("unloaded model", "model='%s' bytes=%s idle=%s: %s", s->name,
               units_format_size(held, bytes, sizeof bytes),
               units_format_time_ms(idle_ms, idle, sizeof idle), why);
    s->terms = s->configured;
    s->keep_alive_ms = INT64_MIN;
    slot_set_state(&e->catalog, s, MODEL_LISTED);
    pthread_mutex_lock(&e->stats_lock);
    e->stats.unloads++;
    pthread_mutex_unlock(&e->stats_lock);
}

/* Retired slots that nothing refers to any more go back to LOOP. */
static void bury(struct engine *e)
{
    struct slot *next;

    for (struct slot *s = e->catalog.first; s; s = next) {
        next = s->next;
        if (!s->retired || s->model || s->users || s->leaving || queue_wants(&e->worker.queue, s))
            continue;
        catalog_remove(&e->catalog, s);
        notes_slot_gone(e, s);
    }
}

int64_t loader_expire(struct engine *e, int64_t now_ms)
{
    int64_t next_ms;
    struct slot *s;

    while ((s = catalog_expired(&e->catalog, now_ms, &next_ms)) != NULL) {
        if (queue_wants(&e->worker.queue, s)) {
            /* Its next work is about to be taken; it may leave after that. */
            next_ms = now_ms;
            break;
        }
        loader_unload(e, s, s->retired ? "it is no longer known" : "its time to live has passed");
        budget_grow(e);
    }
    bury(e);
    return next_ms;
}
