/* Reads what stays, in the order of the file.  See residency.h. */

#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/residency_priv.h"

#define PROGRESS_US 200000

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

static int by_place_in_file(const void *a, const void *b)
{
    const struct item *x = *(const struct item *const *)a;
    const struct item *y = *(const struct item *const *)b;

    if (x->e.part != y->e.part)
        return x->e.part < y->e.part ? -1 : 1;
    return x->e.offset < y->e.offset ? -1 : x->e.offset > y->e.offset;
}

/* Where a block that starts in this extent may read on to: the end of the run of near neighbours. */
static uint64_t run_end(struct item *const *order, size_t n, size_t i)
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

/* A range of an extent to dst, block by block. */
static int read_range(struct load *l, const struct item *it, uint64_t from, uint64_t bytes,
                      uint64_t limit, char *dst, struct err *err)
{
    for (uint64_t at = 0; at < bytes;) {
        size_t n = (size_t)MIN(bytes - at, (uint64_t)STREAM_BLOCK);
        int rc;

        if (l->cancel && *l->cancel)
            return err_set(err, ERR_CANCELLED, "loading %s was cancelled", l->r->who);
        rc = stream_read(l->stream, it->e.part, it->e.offset + from + at, n, limit, dst + at,
                         it->e.name, err);
        if (rc < 0)
            return rc;
        at += n;
        l->done += n;
        if (l->progress && (clock_us() - l->told_us > PROGRESS_US || l->done == l->total)) {
            l->told_us = clock_us();
            l->progress(l->arg, l->done, l->total);
        }
    }
    return 0;
}

/* Every expert to the slot of its number. */
static int read_slices(struct load *l, const struct item *it, uint64_t limit, struct err *err)
{
    const struct residency *r = l->r;
    uint64_t slice = it->e.bytes / it->e.n_experts;
    size_t rank = r->unit_at[r->in.n_units];
    int rc = 0;

    for (size_t e = 0; e < it->e.n_experts && rc >= 0; e++) {
        char *slot = (char *)r->slots.data + e * rank + r->units[it->unit].at;

        rc = read_range(l, it, e * slice, slice, limit, slot + it->at, err);
    }
    return rc;
}

static int read_item(struct load *l, const struct item *it, uint64_t limit, struct err *err)
{
    if (it->kind == ITEM_SLICES)
        return read_slices(l, it, limit, err);
    return read_range(l, it, 0, it->e.bytes, limit, (char *)l->r->dense.data + it->at, err);
}

static bool stays(const struct residency *r, const struct item *it)
{
    return it->kind == ITEM_SLICES ? r->whole : !residency_is_dropped(r, it);
}

static int open_stream(struct residency *r, struct stream **ret, struct err *err)
{
    unsigned n_parts = gguf_parts(r->g);
    int *fds = xreallocarray(NULL, MAX(n_parts, 1), sizeof *fds);
    int rc;

    for (unsigned i = 0; i < n_parts; i++)
        fds[i] = gguf_fd(r->g, i);
    rc = stream_create(fds, n_parts, &r->engine, ret, err);
    free(fds);
    return rc;
}

int residency_read_in(struct residency *r, residency_progress_fn *progress, void *arg,
                      const _Atomic bool *cancel, struct err *err)
{
    struct item **order = xreallocarray(NULL, MAX(r->n_items, 1), sizeof *order);
    struct load l = {.r = r, .progress = progress, .arg = arg, .cancel = cancel};
    int64_t t0 = clock_us();
    size_t n = 0;
    int rc;

    for (size_t i = 0; i < r->n_items; i++)
        if (stays(r, &r->items[i])) {
            order[n++] = &r->items[i];
            l.total += r->items[i].e.bytes;
        }
    qsort(order, n, sizeof *order, by_place_in_file);
    rc = open_stream(r, &l.stream, err);
    for (size_t i = 0; rc >= 0 && i < n; i++)
        rc = read_item(&l, order[i], run_end(order, n, i), err);
    if (l.stream)
        r->bytes_read = stream_bytes_read(l.stream);
    r->read_seconds = (double)(clock_us() - t0) / 1e6;
    stream_destroy(l.stream);
    free(order);
    return rc;
}

int residency_read_home(struct residency *r, extent_id id, struct err *err)
{
    const struct item *it = &r->items[id];
    struct load l = {.r = r};
    int rc = open_stream(r, &l.stream, err);

    if (rc >= 0)
        rc = read_item(&l, it, it->e.offset + it->e.bytes, err);
    if (l.stream)
        r->bytes_read += stream_bytes_read(l.stream);
    stream_destroy(l.stream);
    return rc;
}
