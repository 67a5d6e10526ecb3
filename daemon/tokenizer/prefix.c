/* Sorted texts, walked byte by byte; see tokenizer_priv.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/tokenizer/tokenizer_priv.h"

static int by_text(const void *a, const void *b, void *arg)
{
    const struct texts *t = arg;
    struct view x = texts_at(t, *(const uint32_t *)a);
    struct view y = texts_at(t, *(const uint32_t *)b);
    int c = memcmp(x.p, y.p, MIN(x.len, y.len));

    return c ? c : (x.len > y.len) - (x.len < y.len);
}

static unsigned char byte_at(const struct prefix_set *p, const struct texts *t, size_t i,
                             size_t depth)
{
    return (unsigned char)texts_at(t, p->ids[i]).p[depth];
}

void prefix_build(struct prefix_set *p, const struct texts *t, const uint16_t *attrs, size_t n,
                  unsigned mask)
{
    struct texts borrowed = *t; /* qsort_r takes no const */
    size_t count = 0;

    for (size_t i = 0; i < n; i++)
        count += (attrs[i] & mask) && texts_at(t, i).len;
    p->ids = XNEW_ARRAY(uint32_t, count + 1);
    p->n = 0;
    for (size_t i = 0; i < n; i++)
        if ((attrs[i] & mask) && texts_at(t, i).len)
            p->ids[p->n++] = (uint32_t)i;
    qsort_r(p->ids, p->n, sizeof *p->ids, by_text, &borrowed);
    for (size_t i = 0, b = 0; b <= 256; b++) {
        while (i < p->n && byte_at(p, t, i, 0) < b)
            i++;
        p->first[b] = (uint32_t)i;
    }
}

void prefix_clear(struct prefix_set *p)
{
    free(p->ids);
    *p = (struct prefix_set){0};
}

/* First of [lo, hi) whose byte at depth is at least c; all of them are longer than depth. */
static size_t lower(const struct prefix_set *p, const struct texts *t, size_t lo, size_t hi,
                    size_t depth, unsigned c)
{
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (byte_at(p, t, mid, depth) < c)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

bool prefix_step(const struct prefix_set *p, const struct texts *t, struct prefix_walk *w,
                 unsigned char byte, int32_t *ret_id)
{
    if (w->depth == 0) {
        w->lo = p->first[byte];
        w->hi = p->first[byte + 1];
    } else {
        w->lo = lower(p, t, w->lo, w->hi, w->depth, byte);
        w->hi = lower(p, t, w->lo, w->hi, w->depth, byte + 1u);
    }
    w->depth++;
    *ret_id = -1;
    if (w->lo >= w->hi)
        return false;
    /* The one that ends here is the shortest of the range, so its first; it is then behind. */
    if (texts_at(t, p->ids[w->lo]).len == w->depth)
        *ret_id = (int32_t)p->ids[w->lo++];
    return true;
}
