/* Cuts a text at its special tokens; see tokenizer_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

/*
 * The longest special token wins wherever it stands, then the next shorter
 * one in what is left, and so on.  All places are found in one pass over the
 * text; a place remembers which of the lengths match there in a mask, so more
 * than 64 lengths take more than one pass.
 */
#define LENS_A_PASS 64u

struct place {
    size_t at;
    uint64_t lens;
};

struct found {
    size_t from, to; /* with the white space that belongs to it */
    int32_t id;
};

struct search {
    const struct tokenizer *t;
    struct work *work;
    struct view text;
    uint8_t *taken; /* [text.len], once there is a place */
    size_t cap_taken;
    struct place *places;
    size_t n_places, cap_places;
    struct found *found;
    size_t n_found, cap_found;
};

static int by_length_down(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? 1 : x > y ? -1 : 0;
}

void specials_build(struct tokenizer *t)
{
    size_t n, kept = 0;

    prefix_build(&t->specials, &t->texts, t->attrs, t->n_vocab,
                 ATTR_CONTROL | ATTR_USER_DEFINED | ATTR_UNKNOWN);
    n = t->specials.n;
    t->special_lens = XNEW_ARRAY(uint32_t, n + 1);
    for (size_t i = 0; i < n; i++)
        t->special_lens[i] = (uint32_t)texts_at(&t->texts, t->specials.ids[i]).len;
    qsort(t->special_lens, n, sizeof *t->special_lens, by_length_down);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || t->special_lens[kept - 1] != t->special_lens[i])
            t->special_lens[kept++] = t->special_lens[i];
    t->n_special_lens = kept;
}

/* Index of a length among the distinct ones, which fall. */
static size_t len_index(const struct tokenizer *t, size_t len)
{
    size_t lo = 0, hi = t->n_special_lens;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (t->special_lens[mid] > len)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Text that came from a user matches only what the vocabulary calls user-defined. */
static bool allowed(const struct tokenizer *t, int32_t id, bool trusted)
{
    return trusted || !(t->attrs[id] & (ATTR_CONTROL | ATTR_UNKNOWN));
}

/* Which of the lengths [first, first + 64) have a special token that stands at the start of text. */
static uint64_t lens_at(const struct tokenizer *t, struct view text, bool trusted, size_t first)
{
    struct prefix_walk walk = {.hi = t->specials.n};
    uint64_t mask = 0;
    int32_t id;

    for (size_t i = 0; i < text.len; i++) {
        if (!prefix_step(&t->specials, &t->texts, &walk, (unsigned char)text.p[i], &id))
            break;
        if (id >= 0 && allowed(t, id, trusted)) {
            size_t k = len_index(t, i + 1);

            if (k >= first && k < first + LENS_A_PASS)
                mask |= (uint64_t)1 << (k - first);
        }
    }
    return mask;
}

static void find_places(struct search *s, const struct token_span *span, size_t first)
{
    for (size_t i = span->from; i < span->to && work_step(s->work) == 0; i++) {
        uint64_t lens = lens_at(s->t, view_sub(s->text, i, span->to - i), span->trusted, first);

        if (!lens)
            continue;
        if (WORK_GROW(s->work, s->places, s->n_places + 1, s->cap_places) < 0)
            break;
        s->places[s->n_places++] = (struct place){i, lens};
    }
}

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void take(struct search *s, size_t from, size_t to)
{
    int32_t id = texts_find(&s->t->texts, view_sub(s->text, from, to - from));
    unsigned attrs = s->t->attrs[id];

    if (attrs & ATTR_LSTRIP)
        while (from > 0 && !s->taken[from - 1] && is_space(s->text.p[from - 1]))
            from--;
    if (attrs & ATTR_RSTRIP)
        while (to < s->text.len && !s->taken[to] && is_space(s->text.p[to]))
            to++;
    memset(s->taken + from, 1, to - from);
    if (WORK_GROW(s->work, s->found, s->n_found + 1, s->cap_found) < 0)
        return;
    s->found[s->n_found++] = (struct found){from, to, id};
}

/* What was taken before is at least as long, so a place is free when both its ends are. */
static void take_places(struct search *s, size_t first)
{
    size_t last = MIN(first + LENS_A_PASS, s->t->n_special_lens);

    for (size_t i = first; i < last; i++) {
        size_t len = s->t->special_lens[i];

        for (size_t k = 0; k < s->n_places; k++) {
            size_t at = s->places[k].at;

            if ((s->places[k].lens >> (i - first) & 1) && !s->taken[at] && !s->taken[at + len - 1])
                take(s, at, at + len);
        }
    }
}

static int by_place(const void *a, const void *b)
{
    const struct found *x = a, *y = b;

    return x->from < y->from ? -1 : x->from > y->from;
}

static void add_fragment(struct work *w, struct fragments *f, size_t from, size_t to, int32_t id)
{
    if (WORK_GROW(w, f->list, f->n + 1, f->cap) == 0)
        f->list[f->n++] = (struct fragment){from, to, id};
}

static void find_all(struct search *s, const struct token_span *spans, size_t n_spans)
{
    for (size_t first = 0; first < s->t->n_special_lens && !s->work->failed; first += LENS_A_PASS) {
        s->n_places = 0;
        for (size_t i = 0; i < n_spans; i++)
            find_places(s, &spans[i], first);
        if (!s->n_places)
            continue;
        if (!s->taken) {
            if (WORK_GROW(s->work, s->taken, s->text.len, s->cap_taken) < 0)
                return;
            memset(s->taken, 0, s->text.len);
        }
        take_places(s, first);
    }
}

/* The library sorts in a copy where there is memory for one. */
static void sort_found(struct search *s)
{
    struct found *copy = NULL;
    size_t cap = 0;

    if (s->n_found && WORK_GROW(s->work, copy, s->n_found, cap) == 0) {
        free(copy);
        copy = NULL;
        qsort(s->found, s->n_found, sizeof *s->found, by_place);
    }
    work_free(s->work, copy, cap, sizeof *copy);
}

void specials_split(const struct tokenizer *t, struct view text, const struct token_span *spans,
                    size_t n_spans, struct work *w, struct fragments *ret)
{
    struct search s = {.t = t, .work = w, .text = text};
    size_t at = 0;

    find_all(&s, spans, n_spans);
    sort_found(&s);
    for (size_t i = 0; i < s.n_found; i++) {
        if (at < s.found[i].from)
            add_fragment(w, ret, at, s.found[i].from, -1);
        add_fragment(w, ret, s.found[i].from, s.found[i].to, s.found[i].id);
        at = s.found[i].to;
    }
    if (at < text.len)
        add_fragment(w, ret, at, text.len, -1);
    work_free(w, s.taken, s.cap_taken, 1);
    work_free(w, s.places, s.cap_places, sizeof *s.places);
    work_free(w, s.found, s.cap_found, sizeof *s.found);
}
