/* Reads what stays, in the order of the file.  See residency.h. */

#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/residency_priv.h"

#define PROGRESS_US 200000

struct load {
    struct residency *r;
    residency_progress_fn *progress;
    void *arg;
    const _Atomic bool *cancel;
    size_t done;
    size_t total;
    int64_t told_us;
};

static int by_place_in_file(const void *a, const void *b)
{
    const struct stream_range *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static bool stays(const struct residency *r, const struct item *it)
{
    return it->kind == ITEM_SLICES ? r->whole : !residency_is_dropped(r, it);
}

static struct stream_range range_of(const struct residency *r, const struct item *it)
{
    return (struct stream_range){.part = it->e.part,
                                 .offset = it->e.offset,
                                 .bytes = it->e.bytes,
                                 .dst = (char *)r->dense.data + it->at,
                                 .name = it->e.name};
}

/* Every expert to the slot of its number.  Returns how many. */
static size_t add_slices(const struct residency *r, const struct item *it, struct stream_range *ret)
{
    uint64_t slice = it->e.bytes / it->e.n_experts;
    char *first = (char *)r->slots.data + r->units[it->unit].at + it->at;

    for (size_t e = 0; e < it->e.n_experts; e++) {
        ret[e] = range_of(r, it);
        ret[e].offset += e * slice;
        ret[e].bytes = slice;
        ret[e].dst = first + e * r->unit_at[r->in.n_units];
    }
    return it->e.n_experts;
}

/* What stays, in the order of the file; the caller's. */
static struct stream_range *list(const struct residency *r, size_t *ret_n)
{
    struct stream_range *ranges;
    size_t cap = 1, n = 0;

    for (size_t i = 0; i < r->n_items; i++)
        cap += MAX(r->items[i].e.n_experts, 1);
    ranges = xreallocarray(NULL, cap, sizeof *ranges);
    for (size_t i = 0; i < r->n_items; i++) {
        if (!stays(r, &r->items[i]))
            continue;
        if (r->items[i].kind == ITEM_SLICES)
            n += add_slices(r, &r->items[i], ranges + n);
        else
            ranges[n++] = range_of(r, &r->items[i]);
    }
    qsort(ranges, n, sizeof *ranges, by_place_in_file);
    *ret_n = n;
    return ranges;
}

static int note(void *arg, size_t bytes, struct err *err)
{
    struct load *l = arg;

    l->done += bytes;
    if (l->progress && (clock_us() - l->told_us > PROGRESS_US || l->done == l->total)) {
        l->told_us = clock_us();
        l->progress(l->arg, l->done, l->total);
    }
    if (l->cancel && *l->cancel)
        return err_set(err, ERR_CANCELLED, "loading %s was cancelled", l->r->who);
    return 0;
}

static size_t bytes_that_stay(const struct residency *r)
{
    size_t sum = 0;

    for (size_t i = 0; i < r->n_items; i++)
        if (stays(r, &r->items[i]))
            sum += r->items[i].e.bytes;
    return sum;
}

static bool is_cancelled(void *arg)
{
    return note(arg, 0, NULL) < 0;
}

int residency_look_at_drives(struct residency *r, residency_progress_fn *progress, void *arg,
                             const _Atomic bool *cancel, struct err *err)
{
    struct load l = {
        .r = r, .progress = progress, .arg = arg, .cancel = cancel, .total = bytes_that_stay(r)};
    struct calibrate_options o = {.state_dir = r->state_dir,
                                  .stop = is_cancelled,
                                  .stop_arg = &l,
                                  .charged = &r->charged[ACCOUNT_STAGING]};

    return residency_know_drives(r, r->whole ? NULL : &o, err);
}

int residency_read_in(struct residency *r, residency_progress_fn *progress, void *arg,
                      const _Atomic bool *cancel, struct err *err)
{
    struct load l = {
        .r = r, .progress = progress, .arg = arg, .cancel = cancel, .total = bytes_that_stay(r)};
    int64_t t0 = clock_us();
    size_t n;
    struct stream_range *ranges = list(r, &n);
    struct reader *reader = NULL;
    struct reader_stats s;
    int rc = residency_open_reader(r, &reader, err);

    if (rc >= 0) {
        rc = stream_read(reader, residency_loading_bytes(r), ranges, n, note, &l, err);
        reader_stats(reader, &s);
        r->bytes_read = s.read_bytes;
    }
    r->read_seconds = (double)(clock_us() - t0) / 1e6;
    reader_destroy(reader);
    free(ranges);
    return rc;
}

int residency_read_part_home(struct residency *r, extent_id id, size_t from, size_t to,
                             size_t staging, struct err *err)
{
    struct stream_range range = range_of(r, &r->items[id]);
    size_t at = r->items[id].at, first = MAX(at, from), end = MIN(at + range.bytes, to);

    if (first >= end)
        return 0;
    range.offset += first - at;
    range.dst = (char *)range.dst + (first - at);
    range.bytes = end - first;
    return stream_read(r->reader, staging, &range, 1, NULL, NULL, err);
}

int residency_read_home(struct residency *r, extent_id id, struct err *err)
{
    const struct stream_range range = range_of(r, &r->items[id]);

    return stream_read(r->reader, stream_staging_bytes(range.bytes), &range, 1, NULL, NULL, err);
}
