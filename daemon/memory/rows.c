/*
 * Rows of tables that are not resident: read when a token names them.  See residency.h.
 *
 * A token of decode begins by waiting for its row, which is next to nothing to read
 * and a whole trip to the drive.  Text repeats its tokens, so the latest row of each
 * place, which its number gives, is kept.
 */

#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/memory/residency_priv.h"

#define ROWS_AT_ONCE 32
#define KEPT_MAX     ((size_t)1024)    /* rows … */
#define KEPT_BYTES   ((size_t)1 << 20) /* … and no more than that in all */

static size_t bounce_bytes(const struct residency *r)
{
    return reader_slot_bytes_any(r->row_bytes);
}

/* A sixteenth of the tables at most: more of a small one would be half of having it resident. */
static size_t kept_places(const struct residency *r)
{
    size_t places = MIN(KEPT_MAX, KEPT_BYTES / (r->row_bytes + sizeof(uint64_t)));

    return MIN(places, r->in.rows_bytes / 16 / MAX(r->row_bytes, 1));
}

/* Places to land in, what is kept (names, then rows), then the rows of a batch close together. */
size_t rows_staging_bytes(const struct residency *r)
{
    return alloc_page_round(ROWS_AT_ONCE * bounce_bytes(r) +
                            kept_places(r) * (sizeof(uint64_t) + r->row_bytes) +
                            r->max_rows * r->row_bytes);
}

static uint64_t *kept_names(const struct residency *r)
{
    return (uint64_t *)(void *)((char *)r->rows.data + ROWS_AT_ONCE * bounce_bytes(r));
}

static char *kept_rows(const struct residency *r)
{
    return (char *)(kept_names(r) + kept_places(r));
}

static char *batch_rows(const struct residency *r)
{
    return kept_rows(r) + kept_places(r) * r->row_bytes;
}

/* Of a row of a table; never 0, which fresh memory holds. */
static uint64_t name_of(const struct residency *r, const struct item *it, int32_t id)
{
    return ((uint64_t)(it - r->items) + 1) << 32 | (uint32_t)id;
}

/* Its place; SIZE_MAX where rows are too long to be kept. */
static size_t place_of(const struct residency *r, uint64_t name)
{
    return kept_places(r) ? (name ^ name >> 32) % kept_places(r) : SIZE_MAX;
}

static bool take_kept(const struct residency *r, const struct item *it, int32_t id, char *row,
                      size_t row_bytes)
{
    uint64_t name = name_of(r, it, id);
    size_t place = place_of(r, name);

    if (place == SIZE_MAX || kept_names(r)[place] != name)
        return false;
    memcpy(row, kept_rows(r) + place * r->row_bytes, row_bytes);
    return true;
}

static void keep(struct residency *r, const struct item *it, int32_t id, const char *row,
                 size_t row_bytes)
{
    uint64_t name = name_of(r, it, id);
    size_t place = place_of(r, name);

    if (place == SIZE_MAX)
        return;
    kept_names(r)[place] = name;
    memcpy(kept_rows(r) + place * r->row_bytes, row, row_bytes);
}

/* Where the same row was wanted before; n when nowhere. */
static size_t seen_at(const int32_t *ids, size_t i)
{
    size_t j = 0;

    while (j < i && ids[j] != ids[i])
        j++;
    return j;
}

static int take(struct residency *r, const struct item *it, const struct flight *f, int32_t id,
                char *row, size_t row_bytes, struct err *err)
{
    int rc = read_check(&f->rd, err);

    if (rc < 0)
        return rc;
    memcpy(row, reader_data(&f->rd), row_bytes);
    keep(r, it, id, row, row_bytes);
    return 0;
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

        if (seen_at(ids, i) < i || take_kept(r, it, ids[i], rows + i * row_bytes, row_bytes))
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
    for (; n_back < n && rc >= 0; n_back++) {
        size_t i = flights[n_back].index;

        rc = take(r, it, &flights[n_back], ids[i], rows + i * row_bytes, row_bytes, err);
    }
    return rc;
}

int residency_rows(struct residency *r, extent_id id, const int32_t *ids, size_t n,
                   const void **ret_rows, struct err *err)
{
    const struct item *it = &r->items[id];
    char *rows = batch_rows(r);
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
