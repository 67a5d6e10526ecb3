/*
 * Dense weights that stream: what a layer drops is a segment; segments pass
 * through the slots of a ring in the order of the layers, over and over, so
 * the first ones of the next token are read while this one ends.
 *
 * A segment keeps its slot until another layer begins.  One that is wanted out
 * of order (a batch was given up halfway) empties the ring.  With experts
 * beside them, segments are read ahead only while the drive has nothing
 * demanded to do.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/residency_priv.h"

#define FREE SIZE_MAX

static int by_layer_and_place(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a;
    const struct item *y = *(const struct item *const *)b;

    if (x->e.layer != y->e.layer)
        return x->e.layer < y->e.layer ? -1 : 1;
    if (x->e.part != y->e.part)
        return x->e.part < y->e.part ? -1 : 1;
    return x->e.offset < y->e.offset ? -1 : x->e.offset > y->e.offset;
}

/* Of a layer's number; they outlive the ring. */
static struct streamed *counts_of(struct residency *r, int layer)
{
    if (!r->streamed)
        r->streamed = XNEW_ARRAY(struct streamed, r->n_layers);
    return &r->streamed[residency_layer_index(r, layer)];
}

/* Segments of all that is dropped. */
static void cut_segments(struct residency *r)
{
    struct ring *g = &r->ring;
    size_t n = r->p.n_dropped;
    struct item **list = XNEW_ARRAY(struct item *, n);

    for (size_t k = 0; k < n; k++)
        list[k] = &r->items[r->drop_items[k]];
    qsort(list, n, sizeof *list, by_layer_and_place);
    g->segments = XNEW_ARRAY(struct segment, n);
    g->items = XNEW_ARRAY(extent_id, n);
    for (size_t k = 0; k < n; k++) {
        struct segment *s = g->n_segments ? &g->segments[g->n_segments - 1] : NULL;

        if (!s || s->layer != list[k]->e.layer) {
            s = &g->segments[g->n_segments++];
            *s = (struct segment){
                .layer = list[k]->e.layer, .counts = counts_of(r, list[k]->e.layer), .first = k};
        }
        list[k]->ring_at = s->n ? list[k - 1]->ring_at +
                                      reader_slot_bytes(list[k - 1]->e.offset, list[k - 1]->e.bytes)
                                : 0;
        g->items[g->n_items++] = (extent_id)(list[k] - r->items);
        s->n++;
        g->most_items = MAX(g->most_items, s->n);
    }
    free(list);
}

int ring_open(struct residency *r, struct err *err)
{
    struct ring *g = &r->ring;
    struct region region = {0};
    int rc = 0;

    if (g->depth == r->p.ring_depth && g->slot_bytes == r->p.ring_slot_bytes) {
        region = g->region;
        g->region = (struct region){0};
    }
    ring_close(r);
    if (!region.data)
        rc = r->ops->alloc(r->be, r->p.ring_depth * r->p.ring_slot_bytes, &region, err);
    if (rc < 0)
        return rc;
    g->region = region;
    g->depth = r->p.ring_depth;
    g->slot_bytes = r->p.ring_slot_bytes;
    cut_segments(r);
    g->slots = XNEW_ARRAY(struct ring_slot, g->depth);
    for (size_t i = 0; i < g->depth; i++) {
        g->slots[i].segment = FREE;
        g->slots[i].flights = XNEW_ARRAY(struct flight, g->most_items);
    }
    g->in_use = FREE;
    /* A layer computes in few pieces: what they give the drive time for must be in flight when one
     * begins.  Beside experts the window stays short, or their reads would wait behind these. */
    reader_set_ahead(r->reader, r->in.n_units ? 0 : g->slot_bytes);
    return 0;
}

void ring_close(struct residency *r)
{
    struct ring *g = &r->ring;

    for (size_t i = 0; g->slots && i < g->depth; i++)
        free(g->slots[i].flights);
    free(g->slots);
    free(g->segments);
    free(g->items);
    if (g->region.data)
        r->ops->free(r->be, &g->region);
    *g = (struct ring){0};
}

static char *slot_data(const struct ring *g, size_t slot)
{
    return (char *)g->region.data + slot * g->slot_bytes;
}

static void read_segment(struct residency *r, size_t slot, size_t segment)
{
    struct ring *g = &r->ring;
    const struct segment *s = &g->segments[segment];
    struct ring_slot *t = &g->slots[slot];
    struct read **list = XNEW_ARRAY(struct read *, s->n);

    t->segment = segment;
    t->failed = false;
    t->ahead_bytes = 0;
    t->pending = (unsigned)s->n;
    for (size_t i = 0; i < s->n; i++) {
        const struct item *it = &r->items[g->items[s->first + i]];
        struct flight *f = &t->flights[i];

        *f = (struct flight){.kind = FLIGHT_RING, .index = slot};
        f->rd = (struct read){.class = r->in.n_units ? READ_AHEAD : READ_DEMANDED,
                              .part = it->e.part,
                              .offset = it->e.offset,
                              .bytes = it->e.bytes,
                              .buffer = slot_data(g, slot) + it->ring_at,
                              .capacity = reader_slot_bytes(it->e.offset, it->e.bytes),
                              .name = it->e.name,
                              .user = f};
        list[i] = &f->rd;
    }
    reader_submit(r->reader, list, (unsigned)s->n);
    free(list);
}

/* Every free slot takes the next segment that is in none. */
static void fill(struct residency *r)
{
    struct ring *g = &r->ring;

    for (size_t i = 0; i < g->depth; i++) {
        if (g->slots[i].segment != FREE)
            continue;
        for (size_t j = 0; j < g->depth; j++)
            if (g->slots[j].segment == g->next)
                return; /* all of a short ring is there */
        read_segment(r, i, g->next);
        g->next = (g->next + 1) % g->n_segments;
    }
}

void ring_landed(struct residency *r, struct flight *f)
{
    struct ring_slot *t = &r->ring.slots[f->index];

    t->pending--;
    if (t->segment != FREE) {
        struct streamed *counts = r->ring.segments[t->segment].counts;

        counts->read_bytes += f->rd.read_bytes;
        if (t->segment != r->ring.in_use) {
            t->ahead_bytes += f->rd.read_bytes;
            counts->ahead_bytes += f->rd.read_bytes;
        }
    }
    if (f->rd.result < 0 && !t->failed) {
        t->failed = true;
        read_check(&f->rd, &r->ring.err);
    }
}

void ring_forget(struct residency *r)
{
    for (size_t i = 0; i < r->ring.depth; i++) {
        struct ring_slot *t = &r->ring.slots[i];

        if (t->segment != FREE && t->segment != r->ring.in_use)
            r->ring.segments[t->segment].counts->ahead_unused_bytes += t->ahead_bytes;
        t->segment = FREE;
        t->pending = 0;
    }
    r->ring.in_use = FREE;
}

static size_t find_segment(const struct ring *g, int layer)
{
    size_t lo = 0, hi = g->n_segments;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (g->segments[mid].layer < layer)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

static struct ring_slot *find_slot(struct ring *g, size_t segment)
{
    for (size_t i = 0; i < g->depth; i++)
        if (g->slots[i].segment == segment)
            return &g->slots[i];
    return NULL;
}

static void wait_for(struct residency *r, const struct ring_slot *t)
{
    struct streamed *counts = r->ring.segments[t->segment].counts;
    int64_t t0 = clock_us();
    uint64_t us;

    residency_pump(r, 0);
    while (t->pending)
        residency_pump(r, 1);
    us = (uint64_t)(clock_us() - t0);
    r->ring_wait_us += us;
    counts->wait_us += us;
}

static void count_wanted(struct residency *r, const struct segment *s)
{
    for (size_t i = 0; i < s->n; i++) {
        size_t bytes = r->items[r->ring.items[s->first + i]].e.bytes;

        r->ring_bytes += bytes;
        s->counts->wanted_bytes += bytes;
    }
}

int ring_pin(struct residency *r, struct item *it, const void **ret_data, struct err *err)
{
    struct ring *g = &r->ring;
    size_t segment;
    struct ring_slot *t;
    int rc = g->n_segments ? 0 : residency_reopen_ring(r, err);

    if (rc < 0)
        return rc;
    segment = find_segment(g, it->e.layer);
    t = find_slot(g, segment);
    if (!t) {
        assert(!r->choice.unit);
        reader_cancel(r->reader);
        ring_forget(r);
        g->next = segment;
        fill(r);
        t = find_slot(g, segment);
    }
    if (g->in_use != segment) {
        g->in_use = segment;
        count_wanted(r, &g->segments[segment]);
    }
    wait_for(r, t);
    if (t->failed) {
        /* What was read behind it may be good, but the next try begins at the first layer. */
        if (err)
            *err = g->err;
        reader_cancel(r->reader);
        ring_forget(r);
        return -ERR_IO;
    }
    *ret_data = slot_data(g, (size_t)(t - g->slots)) + it->ring_at + reader_skip(it->e.offset);
    return 0;
}

void ring_turn(struct residency *r, int layer)
{
    struct ring *g = &r->ring;

    if (layer < 0 && g->pins) /* of no layer, among those of one that computes */
        return;
    r->current_layer = layer;
    if (g->in_use != FREE && g->segments[g->in_use].layer != layer) {
        find_slot(g, g->in_use)->segment = FREE;
        g->in_use = FREE;
        fill(r);
    }
    residency_pump(r, 0);
}

bool residency_streams(const struct residency *r)
{
    return r->ring.n_segments > 0;
}

void residency_look(struct residency *r)
{
    residency_pump(r, 0);
}
