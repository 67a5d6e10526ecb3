/*
 * gauge - how fast this machine computes: matrices of a format against rows of
 * activations, by the backend's own kernels, and what an operation costs that
 * has next to nothing to do.
 *
 * For each format that is asked for, once: seconds for a byte of weights at 1,
 * 8, 32 and 256 rows, over more weights than caches hold; about a quarter of
 * a second a format.  Kept in the state folder for the machine that it was
 * measured on (processor, tier, threads), for GAUGE_KEPT_S.  Attention likewise, over
 * a cache, for one query and for many.  The fastest format
 * at one row is what memory gives: the rate of RAM, as these kernels read it.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/backend.h"
#include "common/err.h"

#define GAUGE_POINTS 4
#define GAUGE_KEPT_S ((int64_t)24 * 3600) /* other work beside it slows it, so not for long */

extern const size_t gauge_rows[GAUGE_POINTS];

struct gauge {
    bool known[FORMAT_COUNT];
    double seconds[FORMAT_COUNT][GAUGE_POINTS]; /* for a byte of weights */
    bool attends[FORMAT_COUNT];
    double attention[FORMAT_COUNT][2]; /* for a byte of cache: of one query, of each further one */
    double op_s;                       /* of an operation on a short row; 0: not measured */
    double row_byte_s;                 /* for a byte that operations on many rows read or write */
    char machine[192];
};

/* Bytes that gauge_measure allocates: what the caller reserves as staging. */
size_t gauge_staging_bytes(void);

/* What is kept for this machine; everything unknown when there is nothing.  dir NULL or "": nothing is kept. */
void gauge_open(struct gauge *g, const char *dir, const struct backend_ops *ops,
                struct backend *be);

/* Is something unknown of these formats (bits 1 << id), of attention to a cache, or of operations? */
bool gauge_lacks(const struct gauge *g, uint64_t formats, enum format_id cache);
/* Measures what is unknown, and keeps it.  ERR_NOMEM, or what the backend says. */
int gauge_measure(struct gauge *g, uint64_t formats, enum format_id cache, const char *dir,
                  const struct backend_ops *ops, struct backend *be, struct err *err);

/* Seconds for that many bytes of weights against rows ≥ 1; 0 for a format that is not known. */
double gauge_seconds(const struct gauge *g, enum format_id f, double bytes, double rows);
/* … of attention over that many bytes of cache: queries = rows × heads that share a key. */
double gauge_attention_seconds(const struct gauge *g, enum format_id cache, double bytes,
                               double queries);
/* Bytes a second of the fastest format at one row; 0: nothing is known. */
double gauge_ram_rate(const struct gauge *g);
