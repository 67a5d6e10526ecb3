/* More cache, slower tokens: see guard.h. */
#include "daemon/memory/guard.h"

#include "common/alloc.h"

static double us_per_token(const struct guard_window *w)
{
    return (double)w->us / w->n;
}

/* 1 where nothing was wanted. */
static double hit_rate(const struct guard_window *w)
{
    return w->uses ? (double)w->hits / (double)w->uses : 1.0;
}

static bool is_larger(size_t slots, size_t than)
{
    return slots >= than + MAX((size_t)GUARD_STEP_LEAST, than / 16);
}

static bool is_cliff(const struct guard_window *was, const struct guard_window *now)
{
    return is_larger(now->slots, was->slots) && hit_rate(now) >= hit_rate(was) &&
           us_per_token(now) > GUARD_SLOWER * us_per_token(was) &&
           now->faults >= (uint64_t)GUARD_FAULTS * now->n && now->faults > 2 * was->faults;
}

static enum guard_verdict step_back(struct guard *s, double *ret_slower)
{
    if (ret_slower)
        *ret_slower = us_per_token(&s->now) / us_per_token(&s->best);
    s->cap = MAX(s->best.slots, (size_t)1);
    s->rest = (uint64_t)GUARD_REST << (s->n_steps < 8 ? s->n_steps : 8);
    s->waited = 0;
    s->n_steps++;
    s->now = (struct guard_window){0};
    return GUARD_STEP_BACK;
}

static bool cap_ends(struct guard *s)
{
    if (!s->cap || ++s->waited < s->rest)
        return false;
    s->cap = 0;
    s->best = s->now = (struct guard_window){0}; /* of other days */
    return true;
}

bool guard_window_ends(const struct guard *s)
{
    return s->now.n + 1 == GUARD_WINDOW;
}

enum guard_verdict guard_note(struct guard *s, const struct guard_token *t, double *ret_slower)
{
    struct guard_window *w = &s->now;

    if (cap_ends(s))
        return GUARD_TRY_AGAIN;
    w->us += t->us;
    w->uses += t->uses;
    w->hits += t->hits;
    w->faults += t->major_faults;
    w->slots = t->slots;
    if (++w->n < GUARD_WINDOW)
        return GUARD_STAY;
    if (s->best.n && !s->cap && is_cliff(&s->best, w))
        return step_back(s, ret_slower);
    /* a smaller cache makes what was best of a larger one worthless */
    if (!s->best.n || us_per_token(w) <= us_per_token(&s->best) || w->slots < s->best.slots)
        s->best = *w;
    *w = (struct guard_window){0};
    return GUARD_STAY;
}
