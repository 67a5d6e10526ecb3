/* Short letters about known models and cancels; see engine_priv.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/engine/engine_priv.h"

struct note {
    struct letter letter;
    struct slot *slot;
    struct slot_terms terms;
    uint64_t id;
};

static void post(struct mailbox *to, void (*deliver)(struct letter *l, void *engine),
                 struct note content)
{
    struct note *n = XNEW(struct note);

    *n = content;
    n->letter.deliver = deliver;
    mailbox_post(to, &n->letter);
}

/* -- ENGINE ---------------------------------------------------------------------------- */

static void on_known(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct note *n = (struct note *)l;

    catalog_add(&e->catalog, n->slot);
    free(n);
}

static void on_terms(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct note *n = (struct note *)l;

    /* Context and cache format come into force at the next load. */
    n->slot->configured = n->terms;
    n->slot->terms.ttl_ms = n->terms.ttl_ms;
    n->slot->terms.pin = n->terms.pin;
    if (!n->slot->model && n->slot->state != MODEL_LOADING)
        n->slot->terms = n->terms;
    slot_publish(&e->catalog, n->slot);
    free(n);
}

static void on_retired(struct letter *l, void *engine)
{
    struct note *n = (struct note *)l;

    (void)engine;
    n->slot->retired = true; /* loader_expire does the rest */
    free(n);
}

static void on_cancel(struct letter *l, void *engine)
{
    struct note *n = (struct note *)l;

    worker_cancel(engine, n->id);
    free(n);
}

static void on_grow(struct letter *l, void *engine)
{
    budget_grow(engine);
    free(l);
}

static void on_stop(struct letter *l, void *engine)
{
    struct engine *e = engine;

    e->worker.stop = true;
    free(l);
}

/* -- LOOP ------------------------------------------------------------------------------- */

static void on_gone(struct letter *l, void *engine)
{
    struct note *n = (struct note *)l;

    (void)engine;
    slot_destroy(n->slot);
    free(n);
}

void notes_slot_known(struct engine *e, struct slot *s)
{
    post(e->inbox, on_known, (struct note){.slot = s});
}

void notes_slot_terms(struct engine *e, struct slot *s, const struct slot_terms *terms)
{
    post(e->inbox, on_terms, (struct note){.slot = s, .terms = *terms});
}

void notes_slot_retired(struct engine *e, struct slot *s)
{
    post(e->inbox, on_retired, (struct note){.slot = s});
}

void notes_cancel(struct engine *e, uint64_t id)
{
    post(e->inbox, on_cancel, (struct note){.id = id});
}

void notes_grow(struct engine *e)
{
    post(e->inbox, on_grow, (struct note){0});
}

void notes_stop(struct engine *e)
{
    post(e->inbox, on_stop, (struct note){0});
}

void notes_slot_gone(struct engine *e, struct slot *take_slot)
{
    post(e->outbox, on_gone, (struct note){.slot = take_slot});
}
