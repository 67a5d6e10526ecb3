/* Rows of tables that are not resident: read when a token names them.  See residency.h. */

#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/residency_priv.h"

#define ROWS_AT_ONCE 32

static size_t bounce_bytes(const struct residency *r)
{
    return reader_slot_bytes_any(r->row_bytes);
}

/* Places to land in, then the rows close together. */
size_t rows_staging_bytes(const struct residency *r)
{
    return alloc_page_round(ROWS_AT_ONCE * bounce_bytes(r) + r->max_rows * r->row_bytes);
}

/* Where the same row was wanted before; n when nowhere. */
static size_t seen_at(const int32_t *ids, size_t i)
{
    size_t j = 0;

    while (j < i && ids[j] != ids[i])
        j++;
    return j;
}

static int take(struct flight *f, char *rows, size_t row_bytes, struct err *err)
{
    int rc = read_check(&f->rd, err);

    if (rc >= 0)
        memcpy(rows + f->index * row_bytes, reader_data(&f->rd), row_bytes);
    return rc;
}

/* The rows [from, to), no more than there are places. */
static int read_some(struct residency *r, const struct item *it, const int32_t *ids, size_t from,
                     size_t to, char *rows, struct err *err)
{
    size_t row_bytes = it->e.bytes / it->e.n_rows;
    struct flight flights[ROWS_AT_ONCE];
    struct read *list[ROWS_AT_ONCE];
    unsigned n = 0, n_back = 0;
    int rc = 0;

    for (size_t i = from; i < to; i++) {
        struct flight *f = &flights[n];

        if (seen_at(ids, i) < i)
            continue;
        *f = (struct flight){.kind = FLIGHT_ROW, .index = i};
        f->rd = (struct read){.part = it->e.part,
                              .offset = it->e.offset + (uint64_t)(uint32_t)ids[i] * row_bytes,
                              .bytes = row_bytes,
                              .buffer = (char *)r->rows.data + n * bounce_bytes(r),
                              .capacity = bounce_bytes(r),
                              .name = it->e.name,
                              .user = f};
        list[n++] = &f->rd;
    }
    if (n)
        reader_submit(r->reader, list, n);
    r->rows_pending = n;
    while (r->rows_pending)
        residency_pump(r, 1);
    for (; n_back < n && rc >= 0; n_back++)
        rc = take(&flights[n_back], rows, row_bytes, err);
    return rc;
}

int residency_rows(struct residency *r, extent_id id, const int32_t *ids, size_t n,
                   const void **ret_rows, struct err *err)
{
    const struct item *it = &r->items[id];
    char *rows = (char *)r->rows.data + ROWS_AT_ONCE * bounce_bytes(r);
    size_t row_bytes = it->e.bytes / it->e.n_rows;
    int64_t t0 = clock_us();
    int rc = 0;

    for (size_t at = 0; at < n && rc >= 0; at += ROWS_AT_ONCE)
        rc = read_some(r, it, ids, at, MIN(n, at + ROWS_AT_ONCE), rows, err);
    for (size_t i = 0; i < n && rc >= 0; i++) {
        size_t first = seen_at(ids, i);

        if (first < i)
            memcpy(rows + i * row_bytes, rows + first * row_bytes, row_bytes);
    }
    r->rows_wait_us += (uint64_t)(clock_us() - t0);
    *ret_rows = rows;
    return rc;
}
