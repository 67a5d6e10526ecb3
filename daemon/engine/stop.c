/* One automaton per stop string; see stop.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "daemon/engine/stop.h"

struct stop_pattern {
    struct view text;
    uint32_t *
        back; /* [len] length of the longest beginning of text that text[0 … i] ends in, but itself */
    size_t at; /* how much of text the input ends in */
};

size_t stop_bytes(size_t text_bytes, unsigned n)
{
    return n * sizeof(struct stop_pattern) + text_bytes * (sizeof(uint32_t) + 1);
}

void stop_init(struct stop_filter *f)
{
    *f = (struct stop_filter){.matched = -1};
}

void stop_add(struct stop_filter *f, struct view text)
{
    struct stop_pattern *p;
    size_t len = 0;

    f->patterns = xreallocarray(f->patterns, f->n + 1, sizeof *f->patterns);
    p = &f->patterns[f->n++];
    *p = (struct stop_pattern){.text = text, .back = XNEW_ARRAY(uint32_t, text.len + 1)};
    for (size_t i = 1; i < text.len; i++) {
        while (len > 0 && text.p[i] != text.p[len])
            len = p->back[len - 1];
        if (text.p[i] == text.p[len])
            len++;
        p->back[i] = (uint32_t)len;
    }
}

void stop_clear(struct stop_filter *f)
{
    for (unsigned i = 0; i < f->n; i++)
        free(f->patterns[i].back);
    free(f->patterns);
    str_clear(&f->held);
    stop_init(f);
}

void stop_reset(struct stop_filter *f)
{
    for (unsigned i = 0; i < f->n; i++)
        f->patterns[i].at = 0;
    str_truncate(&f->held, 0);
    f->matched = -1;
}

/* Takes one byte; true when the whole pattern is there. */
static bool advance(struct stop_pattern *p, char byte)
{
    if (p->text.len == 0)
        return false;
    while (p->at > 0 && p->text.p[p->at] != byte)
        p->at = p->back[p->at - 1];
    if (p->text.p[p->at] == byte)
        p->at++;
    return p->at == p->text.len;
}

/* Gives out all but the last keep bytes. */
static void give_out(struct stop_filter *f, size_t keep, struct str *out)
{
    size_t n = f->held.len - keep;

    str_add(out, str_text(&f->held), n);
    str_remove_front(&f->held, n);
}

bool stop_feed(struct stop_filter *f, struct view piece, struct str *out)
{
    size_t keep = 0;

    if (f->matched >= 0)
        return true;
    for (size_t i = 0; i < piece.len; i++) {
        size_t longest = 0;

        str_addc(&f->held, piece.p[i]);
        for (unsigned k = 0; k < f->n; k++)
            if (advance(&f->patterns[k], piece.p[i]) && f->patterns[k].text.len > longest) {
                f->matched = (int)k;
                longest = f->patterns[k].text.len;
            }
        if (f->matched >= 0) {
            give_out(f, longest, out);
            str_truncate(&f->held, 0);
            return true;
        }
    }
    for (unsigned k = 0; k < f->n; k++)
        keep = MAX(keep, f->patterns[k].at);
    give_out(f, keep, out);
    return false;
}

void stop_finish(struct stop_filter *f, struct str *out)
{
    give_out(f, 0, out);
}
