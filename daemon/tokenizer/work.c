/* Memory and time of one encoding: asked for before it is taken; see tokenizer_priv.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

/* Steps between two ticks: about a millisecond. */
#define STEPS_A_TICK 4096u

/* Room is asked for, and given back, in pieces of this: most texts need one. */
#define ROOM_STEP ((size_t)64 << 10)

static int take(struct work *w, size_t bytes)
{
    size_t used = w->used + bytes, more = 0;
    int r;

    if (w->failed || !w->room)
        return w->failed;
    if (used > w->asked)
        more = (used - w->asked + ROOM_STEP - 1) / ROOM_STEP * ROOM_STEP;
    if (more && (r = w->room->reserve(w->room->arg, more, w->err)) < 0)
        return w->failed = r;
    w->asked += more;
    w->used = used;
    return 0;
}

static void give_back(struct work *w, size_t bytes, size_t keep)
{
    size_t less;

    if (!w->room)
        return;
    w->used -= bytes;
    less = w->asked - w->used;
    if (less <= keep)
        return;
    w->room->release(w->room->arg, less - keep);
    w->asked -= less - keep;
}

void *work_grow(struct work *w, void *p, size_t need, size_t *cap, size_t elem_bytes)
{
    size_t n = MAX(need, MAX(*cap + *cap / 2, (size_t)64));

    /* While it moves there are both. */
    if (take(w, n * elem_bytes) < 0)
        return p;
    p = xreallocarray(p, n, elem_bytes);
    give_back(w, *cap * elem_bytes, ROOM_STEP);
    *cap = n;
    return p;
}

void work_free(struct work *w, void *p, size_t cap, size_t elem_bytes)
{
    free(p);
    give_back(w, cap * elem_bytes, ROOM_STEP);
}

int work_text(struct work *w, struct str *s, size_t more)
{
    return WORK_GROW(w, s->p, s->len + more + 1, s->cap);
}

void work_text_free(struct work *w, struct str *s)
{
    work_free(w, s->p, s->cap, 1);
    *s = (struct str){0};
}

int work_step(struct work *w)
{
    int r;

    if (++w->steps % STEPS_A_TICK == 0 && !w->failed && w->room && w->room->tick &&
        (r = w->room->tick(w->room->arg, w->err)) < 0)
        w->failed = r;
    return w->failed;
}

void work_add(struct work *w, int32_t id)
{
    if (WORK_GROW(w, w->out->ids, w->out->n + 1, w->out->cap) == 0)
        w->out->ids[w->out->n++] = id;
}

void work_end(struct work *w)
{
    struct token_list *out = w->out;
    size_t cut = w->room && out->ids ? out->cap - MAX(out->n, (size_t)1) : 0;

    if (cut) {
        out->cap -= cut;
        out->ids = xreallocarray(out->ids, out->cap, sizeof *out->ids);
    }
    give_back(w, cut * sizeof *out->ids, 0);
}
