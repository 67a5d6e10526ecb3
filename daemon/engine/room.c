/* See room.h. */
#include "daemon/engine/room.h"

#include "common/alloc.h"

/* Left free for requests by models that could take it all: their texts, ids and samplers. */
#define HEADROOM_BYTES     ((size_t)16 << 20)
#define HEADROOM_PER_TOKEN ((size_t)40) /* of the vocabulary */

/*
 * A model without a configured context takes what is free, if that is at least
 * this many tokens; only for less do others have to give.
 */
#define CTX_ENOUGH 8192

static size_t headroom_most(const struct model *m)
{
    struct model_info info;

    model_info(m, &info);
    return HEADROOM_BYTES + info.n_vocab * HEADROOM_PER_TOKEN;
}

size_t room_headroom(const struct model *m, size_t bytes)
{
    return MIN(headroom_most(m), bytes / MODEL_HEADROOM_SHARE);
}

int room_plan(const struct engine_options *opt, struct model *m, struct model_options *o,
              size_t bytes, struct model_plan *ret, struct err *err)
{
    size_t less = bytes - room_headroom(m, bytes);
    bool ctx_given = o->n_ctx != 0;
    int r;

    o->headroom = ctx_given ? 0 : headroom_most(m);
    o->bytes = ctx_given ? bytes : less;
    r = model_plan(m, o, opt->backend_ops, opt->backend, o->bytes, ret, err);
    if (r < 0 || !ctx_given || !ret->fits || ret->placement.mode == PLACEMENT_ALL)
        return r;
    r = model_plan(m, o, opt->backend_ops, opt->backend, less, ret, err);
    if (r >= 0 && !ret->fits)
        return model_plan(m, o, opt->backend_ops, opt->backend, bytes, ret, err);
    o->bytes = less;
    return r;
}

static bool fits(const struct model_plan *p)
{
    return p->fits;
}

static bool good_enough(const struct model_plan *p)
{
    return p->fits && placement_is_whole(&p->placement) &&
           (!p->ctx_capped || p->n_ctx >= CTX_ENOUGH);
}

/* -- who gives --------------------------------------------------------------------------------- */

struct search {
    const struct engine_options *opt;
    struct model *m;
    struct model_options *o;
    const struct givers *from;
    void *arg;
};

/* With what is free. */
static int plan(const struct search *s, struct model_plan *ret, struct err *err)
{
    return room_plan(s->opt, s->m, s->o, s->from->free(s->arg), ret, err);
}

/* With more than that, to see. */
static int try(const struct search *s, size_t more, struct model_plan *ret, struct err *err)
{
    struct model_options tried = *s->o;

    return room_plan(s->opt, s->m, &tried, s->from->free(s->arg) + more, ret, err);
}

/*
 * Of `most` more bytes the least, within a hundredth, with which the plan is as
 * wanted: 1.  0: not even with all of them.
 */
static int least(const struct search *s, size_t most, bool (*wanted)(const struct model_plan *p),
                 size_t *ret_more, struct err *err)
{
    size_t no = 0, step = most / 128 + 1;
    struct model_plan with;
    int r = try(s, most, &with, err);

    if (r < 0 || !wanted(&with))
        return MIN(r, 0);
    while (most - no > step) {
        size_t half = no + (most - no) / 2;

        r = try(s, half, &with, err);
        if (r < 0)
            return r;
        if (wanted(&with))
            most = half;
        else
            no = half;
    }
    *ret_more = most;
    return 1;
}

/* They give what makes the plan as it is wanted, and no more of it; nothing where all would not do. */
static int ask(const struct search *s, size_t (*bytes)(void *arg),
               void (*shrink)(void *arg, size_t bytes), bool (*wanted)(const struct model_plan *p),
               struct model_plan *p, struct err *err)
{
    size_t more;
    int r = least(s, bytes(s->arg), wanted, &more, err);

    if (r <= 0)
        return r;
    shrink(s->arg, more);
    return plan(s, p, err);
}

int room_make(const struct engine_options *opt, struct model *m, struct model_options *o,
              const struct givers *from, void *arg, struct model_plan *ret, struct err *err)
{
    const struct search s = {opt, m, o, from, arg};
    struct model_plan best;
    int r = plan(&s, ret, err);

    if (r < 0 || good_enough(ret) || !from->most(arg))
        return r;
    r = try(&s, from->most(arg), &best, err);
    if (r >= 0 && !best.fits) {
        *ret = best;
        return r;
    }
    while (r >= 0 && !good_enough(ret)) {
        r = ask(&s, from->caches, from->shrink_caches, good_enough, ret, err);
        if (r < 0 || good_enough(ret) || !from->leave(arg))
            break;
        r = plan(&s, ret, err);
    }
    if (r >= 0 && !ret->fits)
        r = ask(&s, from->spare, from->shrink, fits, ret, err);
    return r;
}

/* -- as it was told ------------------------------------------------------------------------------ */

static size_t told_free(void *offers)
{
    return ((const struct room_offers *)offers)->free;
}

static size_t told_caches(void *offers)
{
    const struct room_offers *o = offers;
    size_t sum = 0;

    for (size_t i = 0; i < o->n; i++)
        sum += o->list[i].cache;
    return sum;
}

static size_t told_spare(void *offers)
{
    const struct room_offers *o = offers;
    size_t sum = 0;

    for (size_t i = 0; i < o->n; i++)
        sum += o->list[i].spare;
    return sum;
}

size_t room_offered_bytes(const struct room_offers *o)
{
    size_t sum = 0;

    for (size_t i = 0; i < o->n; i++)
        sum += o->list[i].leaves ? o->list[i].held : o->list[i].spare;
    return sum;
}

static size_t told_most(void *offers)
{
    return room_offered_bytes(offers);
}

/* Whose bytes those are does not matter any more: this is asked once, at the end. */
static void told_shrink(void *offers, size_t bytes)
{
    ((struct room_offers *)offers)->free += bytes;
}

static bool told_leave(void *offers)
{
    struct room_offers *o = offers;
    struct slot_offer *oldest = NULL;

    for (size_t i = 0; i < o->n; i++)
        if (o->list[i].leaves && (!oldest || o->list[i].used_at_us < oldest->used_at_us))
            oldest = &o->list[i];
    if (!oldest)
        return false;
    o->free += oldest->held;
    *oldest = (struct slot_offer){0};
    return true;
}

int room_foresee(const struct engine_options *opt, struct model *m, struct model_options *o,
                 struct room_offers *offers, struct model_plan *ret, struct err *err)
{
    static const struct givers told = {.free = told_free,
                                       .caches = told_caches,
                                       .spare = told_spare,
                                       .most = told_most,
                                       .shrink_caches = told_shrink,
                                       .shrink = told_shrink,
                                       .leave = told_leave};

    return room_make(opt, m, o, &told, offers, ret, err);
}
