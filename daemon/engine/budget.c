/* A budget that changes under loaded models: who gives back, who grows; see engine_priv.h. */
#include "common/alloc.h"
#include "common/log.h"
#include "common/units.h"
#include "daemon/engine/engine_priv.h"

static size_t sum_of(const struct engine *e, size_t (*part)(const struct slot *s))
{
    size_t sum = 0;

    for (const struct slot *s = e->catalog.first; s; s = s->next)
        sum += part(s);
    return sum;
}

size_t budget_spare_bytes(const struct engine *e)
{
    return sum_of(e, slot_spare_bytes);
}

size_t budget_cache_bytes(const struct engine *e)
{
    return sum_of(e, slot_cache_bytes);
}

size_t budget_obtainable_bytes(const struct engine *e, const struct slot *but)
{
    size_t sum = 0;

    for (const struct slot *s = e->catalog.first; s; s = s->next)
        if (s != but)
            sum += slot_may_leave(s, but) ? slot_held_bytes(s) : slot_spare_bytes(s);
    return sum;
}

void budget_tell_spare(struct engine *e)
{
    atomic_store_explicit(&e->stat_spare_bytes, budget_spare_bytes(e), memory_order_relaxed);
}

size_t engine_spare_bytes(const struct engine *e)
{
    return atomic_load_explicit(&e->stat_spare_bytes, memory_order_relaxed);
}

static void publish(struct engine *e, struct slot *s)
{
    slot_publish(&e->catalog, s);
    budget_tell_spare(e);
}

void budget_others(const struct engine *e, const struct slot *but, struct model_others *ret)
{
    size_t used = ledger_used(e->opt.ledger, POOL_RAM);

    *ret = (struct model_others){.bytes = used - MIN(used, budget_obtainable_bytes(e, but))};
    for (const struct slot *s = e->catalog.first; s; s = s->next)
        if (s != but && s->model && !slot_may_leave(s, but))
            model_others_add(ret, s->name, slot_held_bytes(s),
                             slot_held_bytes(s) - slot_spare_bytes(s));
}

/* Of the idle ones (or the busy ones), the one used longest ago that has something to give. */
static struct slot *giver(const struct engine *e, bool idle, size_t (*part)(const struct slot *s))
{
    struct slot *oldest = NULL;

    for (struct slot *s = e->catalog.first; s; s = s->next)
        if (part(s) && slot_idle(s) == idle && (!oldest || s->used_at_us < oldest->used_at_us))
            oldest = s;
    return oldest;
}

static size_t shrink_one(struct engine *e, struct slot *s, size_t bytes)
{
    size_t held = model_held_bytes(s->model), now;
    size_t to = held - bytes;
    char was[24], is[24];
    struct err err;

    if (model_resize(s->model, to, &err) < 0)
        log_warning("a model could not give back memory", "model='%s': %s", s->name, err.text);
    publish(e, s);
    now = model_held_bytes(s->model);
    log_info("model gives back memory", "model='%s' held=%s now=%s", s->name,
             units_format_size(held, was, sizeof was), units_format_size(now, is, sizeof is));
    return held > now ? held - now : 0;
}

static size_t shrink(struct engine *e, size_t bytes, size_t (*part)(const struct slot *s))
{
    size_t freed = 0;

    e->worker.taken = true;
    for (int idle = 1; idle >= 0; idle--)
        for (struct slot *s; freed < bytes && (s = giver(e, idle, part));) {
            size_t n = shrink_one(e, s, MIN(bytes - freed, part(s)));

            if (!n)
                break;
            freed += n;
        }
    return freed;
}

size_t budget_shrink(struct engine *e, size_t bytes)
{
    return shrink(e, bytes, slot_spare_bytes);
}

size_t budget_shrink_caches(struct engine *e, size_t bytes)
{
    return shrink(e, bytes, slot_cache_bytes);
}

static size_t missing(const struct engine *e, size_t bytes)
{
    return bytes - MIN(bytes, ledger_free_bytes(e->opt.ledger, POOL_RAM));
}

bool budget_find(struct engine *e, size_t bytes, const char *why)
{
    struct slot *victim;

    if (!missing(e, bytes) || missing(e, bytes) > budget_obtainable_bytes(e, NULL))
        return false;
    if (budget_cache_bytes(e) >= missing(e, bytes))
        budget_shrink_caches(e, missing(e, bytes));
    while (missing(e, bytes) && (victim = catalog_victim(&e->catalog, NULL))) {
        e->worker.taken = true; /* it may have held more than is missing */
        loader_unload(e, victim, why);
    }
    /* what asks does not fail for the speed of another */
    if (missing(e, bytes))
        budget_shrink(e, missing(e, bytes));
    return !missing(e, bytes);
}

bool budget_lend(struct engine *e, size_t bytes)
{
    if (!missing(e, bytes) || missing(e, bytes) > budget_spare_bytes(e))
        return false;
    budget_shrink(e, missing(e, bytes));
    return !missing(e, bytes);
}

void budget_mark(struct engine *e)
{
    for (struct slot *s = e->catalog.first; s; s = s->next)
        s->marked_bytes = s->model ? model_held_bytes(s->model) : 0;
}

/* Headroom is not looked at: there is as much of it as there was. */
void budget_restore(struct engine *e)
{
    for (struct slot *s = e->catalog.first; s; s = s->next) {
        size_t held = s->model ? model_held_bytes(s->model) : 0;
        size_t most = held + ledger_free_bytes(e->opt.ledger, POOL_RAM);

        if (!s->model || held >= s->marked_bytes)
            continue;
        model_resize(s->model, MIN(s->marked_bytes, most), NULL);
        publish(e, s);
    }
}

/* Has a the better claim to what is free?  The one that works, then the one used last. */
static bool comes_before(const struct slot *a, const struct slot *b)
{
    if ((a->users > 0) != (b->users > 0))
        return a->users > 0;
    return a->used_at_us > b->used_at_us;
}

/* The loaded model with the best claim after that of `last`; NULL: after nobody's. */
static struct slot *next_claim(const struct engine *e, const struct slot *last)
{
    struct slot *best = NULL;

    for (struct slot *s = e->catalog.first; s; s = s->next)
        if (s->model && (!last || comes_before(last, s)) && (!best || comes_before(s, best)))
            best = s;
    return best;
}

void budget_grow(struct engine *e)
{
    budget_tell_spare(e);             /* a model may have left */
    e->worker.grow = e->worker.loads; /* what it has planned it may not have reserved yet */
    if (e->worker.loads)
        return;
    for (struct slot *s = NULL; (s = next_claim(e, s));) {
        size_t bytes = ledger_free_bytes(e->opt.ledger, POOL_RAM);
        size_t headroom = room_headroom(s->model, ledger_budget(e->opt.ledger, POOL_RAM));

        if (bytes <= headroom)
            return;
        model_resize(s->model, model_held_bytes(s->model) + bytes - headroom, NULL);
        publish(e, s);
        /* What is on its way home is not charged for yet: nobody else may count on it. */
        if (residency_comes_home(model_weights(s->model))) {
            e->worker.taken = true; /* what it leaves over is seen when it has come home */
            return;
        }
    }
}
