/* Everything resident in one region, in file order.  See residency.h. */

#include "daemon/memory/residency.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/thread.h"

#define EXTENT_ALIGN 64
#define PROGRESS_US  200000

struct slot {
    struct extent e;
    size_t at; /* in the region */
    unsigned pins;
};

struct residency {
    const struct gguf *g;
    struct ledger *ledger;
    const struct backend_ops *ops;
    struct backend *be;
    char *who;
    struct stream_engine engine;
    struct slot *slots;
    size_t n_slots, cap_slots;
    size_t bytes;   /* of the region that all extents need */
    size_t charged; /* in the ledger, under weights */
    struct region region;
    bool loaded;
    size_t bytes_read;
    double read_seconds;
};

struct residency *residency_create(const struct gguf *g, struct ledger *l,
                                   const struct backend_ops *ops, struct backend *be,
                                   const char *who)
{
    struct residency *r = XNEW(struct residency);

    r->g = g;
    r->ledger = l;
    r->ops = ops;
    r->be = be;
    r->who = xstrdup(who);
    return r;
}

static void give_back(struct residency *r)
{
    if (r->region.data)
        r->ops->free(r->be, &r->region);
    r->region = (struct region){0};
    if (r->charged)
        ledger_release(r->ledger, POOL_RAM, ACCOUNT_WEIGHTS, r->charged);
    r->charged = 0;
    r->loaded = false;
}

void residency_destroy(struct residency *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_slots; i++)
        assert(r->slots[i].pins == 0);
    give_back(r);
    free(r->slots);
    free(r->who);
    free(r);
}

void residency_set_engine(struct residency *r, const struct stream_engine *engine)
{
    r->engine = *engine;
}

extent_id residency_add(struct residency *r, const struct extent *e)
{
    struct slot *s;

    assert(!r->loaded);
    ARRAY_GROW(r->slots, r->n_slots + 1, r->cap_slots);
    s = &r->slots[r->n_slots];
    *s = (struct slot){.e = *e, .at = r->bytes};
    /* sizes come from a proven directory: their sum is at most the file's */
    r->bytes += (e->bytes + EXTENT_ALIGN - 1) / EXTENT_ALIGN * EXTENT_ALIGN;
    return (extent_id)r->n_slots++;
}

void residency_need(const struct residency *r, size_t *ret_weights_bytes, size_t *ret_staging_bytes)
{
    *ret_weights_bytes = r->bytes ? r->ops->alloc_bytes(r->be, r->bytes) : 0;
    *ret_staging_bytes = r->bytes ? stream_staging_bytes() : 0;
}

static int by_place_in_file(const void *a, const void *b)
{
    const struct slot *x = *(const struct slot *const *)a;
    const struct slot *y = *(const struct slot *const *)b;

    if (x->e.part != y->e.part)
        return x->e.part < y->e.part ? -1 : 1;
    return x->e.offset < y->e.offset ? -1 : x->e.offset > y->e.offset;
}

/* Where a block that starts in this extent may read on to: the end of the run of near neighbours. */
static uint64_t run_end(struct slot *const *order, size_t n, size_t i)
{
    uint64_t end = order[i]->e.offset + order[i]->e.bytes;
    size_t ahead = 0;

    for (size_t j = i + 1; j < n && order[j]->e.part == order[i]->e.part && ahead < STREAM_BLOCK;
         j++) {
        if (order[j]->e.offset - end > STREAM_ALIGN)
            break;
        ahead += order[j]->e.bytes;
        end = order[j]->e.offset + order[j]->e.bytes;
    }
    return end;
}

struct load {
    struct residency *r;
    struct stream *stream;
    residency_progress_fn *progress;
    void *arg;
    const _Atomic bool *cancel;
    size_t done;
    size_t total;
    int64_t told_us;
};

static int load_extent(struct load *l, struct slot *s, uint64_t limit, struct err *err)
{
    char *dst = (char *)l->r->region.data + s->at;

    for (uint64_t at = 0; at < s->e.bytes;) {
        size_t n = (size_t)MIN(s->e.bytes - at, (uint64_t)STREAM_BLOCK);
        int r;

        if (l->cancel && *l->cancel)
            return err_set(err, ERR_CANCELLED, "loading %s was cancelled", l->r->who);
        r = stream_read(l->stream, s->e.part, s->e.offset + at, n, limit, dst + at, s->e.name, err);
        if (r < 0)
            return r;
        at += n;
        l->done += n;
        if (l->progress && (clock_us() - l->told_us > PROGRESS_US || l->done == l->total)) {
            l->told_us = clock_us();
            l->progress(l->arg, l->done, l->total);
        }
    }
    return 0;
}

static int read_all(struct residency *r, struct load *l, struct err *err)
{
    struct slot **order = xreallocarray(NULL, MAX(r->n_slots, 1), sizeof *order);
    unsigned n_parts = gguf_parts(r->g);
    int *fds = xreallocarray(NULL, MAX(n_parts, 1), sizeof *fds);
    int64_t t0 = clock_us();
    int rc;

    for (size_t i = 0; i < r->n_slots; i++)
        order[i] = &r->slots[i];
    qsort(order, r->n_slots, sizeof *order, by_place_in_file);
    for (unsigned i = 0; i < n_parts; i++)
        fds[i] = gguf_fd(r->g, i);
    rc = stream_create(fds, n_parts, &r->engine, &l->stream, err);
    for (size_t i = 0; rc >= 0 && i < r->n_slots; i++)
        rc = load_extent(l, order[i], run_end(order, r->n_slots, i), err);
    if (l->stream)
        r->bytes_read = stream_bytes_read(l->stream);
    r->read_seconds = (double)(clock_us() - t0) / 1e6;
    stream_destroy(l->stream);
    free(fds);
    free(order);
    return rc;
}

int residency_load(struct residency *r, residency_progress_fn *progress, void *arg,
                   const _Atomic bool *cancel, struct err *err)
{
    struct load l = {.r = r, .progress = progress, .arg = arg, .cancel = cancel};
    size_t weights, staging;
    int rc;

    thread_assert(THREAD_ENGINE);
    assert(!r->loaded);
    for (size_t i = 0; i < r->n_slots; i++)
        l.total += r->slots[i].e.bytes;
    residency_need(r, &weights, &staging);
    rc = ledger_reserve(r->ledger, POOL_RAM, ACCOUNT_WEIGHTS, weights, r->who, err);
    if (rc < 0)
        return rc;
    r->charged = weights;
    rc = ledger_reserve(r->ledger, POOL_RAM, ACCOUNT_STAGING, staging, r->who, err);
    if (rc < 0)
        goto out;
    rc = weights ? r->ops->alloc(r->be, r->bytes, &r->region, err) : 0;
    if (rc >= 0)
        rc = read_all(r, &l, err);
    ledger_release(r->ledger, POOL_RAM, ACCOUNT_STAGING, staging);
out:
    if (rc < 0)
        give_back(r);
    else
        r->loaded = true;
    return rc < 0 ? rc : 0;
}

int residency_pin(struct residency *r, extent_id id, const void **ret_data, struct err *err)
{
    struct slot *s = &r->slots[id];

    if (!r->loaded)
        return err_set(err, ERR_INTERNAL, "tensor '%s' is used before it is loaded", s->e.name);
    s->pins++;
    *ret_data = (const char *)r->region.data + s->at;
    return 0;
}

void residency_unpin(struct residency *r, extent_id id)
{
    assert(r->slots[id].pins > 0);
    r->slots[id].pins--;
}

void residency_stats(const struct residency *r, struct residency_stats *ret)
{
    *ret = (struct residency_stats){
        .extents = r->n_slots, .bytes_read = r->bytes_read, .read_seconds = r->read_seconds};
    for (size_t i = 0; i < r->n_slots; i++)
        ret->bytes += r->slots[i].e.bytes;
    if (r->loaded) {
        ret->resident_extents = r->n_slots;
        ret->resident_bytes = ret->bytes;
    }
}
