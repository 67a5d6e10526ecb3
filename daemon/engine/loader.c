/* Bringing models into memory and letting them leave; see engine_priv.h. */
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

/*
 * A model without a configured context takes what is free, if that is at least
 * this many tokens; only for less do idle models have to leave.
 */
#define CTX_ENOUGH 8192

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

/* What is free, and its text, which it holds already. */
static size_t room_of(const struct engine *e, const struct model *m)
{
    return ledger_free_bytes(e->opt.ledger, POOL_RAM) + model_held_bytes(m);
}

/* With what is free and `more`. */
static int plan(const struct engine *e, struct model *m, struct model_options *o, size_t more,
                struct model_plan *ret, struct err *err)
{
    return budget_plan(&e->opt, m, o, room_of(e, m) + more, ret, err);
}

static bool good_enough(const struct model_plan *p)
{
    return p->fits && placement_is_whole(&p->placement) &&
           (!p->ctx_capped || p->n_ctx >= CTX_ENOUGH);
}

/* What others are asked to give back of, and how. */
struct source {
    size_t (*bytes)(const struct engine *e);
    size_t (*shrink)(struct engine *e, size_t bytes);
};

/*
 * Others give back what makes the plan as it is wanted, and no more of it than
 * that, within a hundredth; nothing where all of it would not do.  *p is the plan then.
 */
static int ask_others(struct engine *e, struct model *m, struct model_options *o,
                      const struct source *from, bool (*wanted)(const struct model_plan *p),
                      struct model_plan *p, struct err *err)
{
    size_t more;
    int r = budget_least(&e->opt, m, o, room_of(e, m), from->bytes(e), wanted, &more, err);

    if (r <= 0)
        return r;
    from->shrink(e, more);
    return plan(e, m, o, 0, p, err);
}

/*
 * Makes a model fit as a whole, if others can be asked for what is missing: first
 * caches shrink, of pinned models too, which have to stay but not with all of their
 * slots; if that is not enough, idle models leave, least recently used first, until
 * it is.  Dense weights that stay would be read again for every token, so they are
 * asked last, for a model that would not be there at all.  No one gives back or
 * leaves in vain.  Fixes the context.  What does not fit with all that there is to
 * have is refused with that sum.
 */
static int make_room(struct engine *e, struct slot *s, struct model *m, struct model_options *o,
                     struct err *err)
{
    static const struct source caches = {budget_cache_bytes, budget_shrink_caches},
                               all = {budget_spare_bytes, budget_shrink};
    size_t most = budget_obtainable_bytes(e, s);
    struct model_options tried = *o;
    struct model_plan p, best;
    struct slot *victim;
    int r = plan(e, m, o, 0, &p, err);

    if (r < 0 || good_enough(&p) || !most)
        goto out;
    r = plan(e, m, &tried, most, &best, err);
    if (r >= 0 && !best.fits)
        return model_refuse(m, &best, err);
    while (r >= 0 && !good_enough(&p)) {
        r = ask_others(e, m, o, &caches, good_enough, &p, err);
        if (r < 0 || good_enough(&p) || !(victim = catalog_victim(&e->catalog, s)))
            break;
        loader_unload(e, victim, "another model needs its memory");
        r = plan(e, m, o, 0, &p, err);
    }
    if (r >= 0 && !p.fits)
        r = ask_others(e, m, o, &all, budget_fits, &p, err);
out:
    if (r >= 0 && p.fits)
        o->n_ctx = p.n_ctx;
    return r;
}

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
    int r;

    budget_others(e, s, &others);
    others.bytes -= MIN(others.bytes, model_held_bytes(l->model)); /* its text */
    o.others = &others;
    l->budget = ledger_budget(e->opt.ledger, POOL_RAM);
    r = make_room(e, s, l->model, &o, err);
    if (r < 0)
        return r;
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
    size_t least;

    if (budget_plan(&e->opt, l->model, &o, bytes, &p, NULL) < 0)
        return bytes + 1;
    /* an eighth stays for requests where the context is what the rest can hold */
    least = o.n_ctx ? p.floor : p.floor + p.floor / 7 + 1;
    return p.fits ? MIN(least, bytes) : MAX(least, bytes + 1);
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
    if (e->worker.stop || s->leaving ||
        (work_cancelled(l->work) && !queue_wants(&e->worker.queue, s)))
        return false;
    l->again = false;
    atomic_store(&s->cancel_load, false);
    s->progress = s->progress_total = 0;
    slot_publish(&e->catalog, s);
    jobs_budget_resume(e);
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
