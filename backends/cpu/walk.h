/*
 * walk - the loop of every quantised matvec of the vector tiers: a linear walk
 * through the file's bytes, as many blocks at a time as a vector has lanes,
 * whatever row they belong to.
 *
 * A format's group function turns that many consecutive blocks into their f32
 * values before d_a, for each column.  Those go to t[row][block], in L1; after
 * as many rows the ordered fma chains of kernels.h run for them at once, a lane
 * each.  So one accumulator per output costs nothing, memory is one stream, and
 * the prefetch distance is the same everywhere.
 *
 * Rows longer than a slab are done slab by slab, the accumulators resting in y
 * meanwhile; rows with gaps between them row by row.
 *
 * A tier includes this after its vector (columns.h tells of vec), its
 * walk_prefetch(at), which asks for a line, and its walk_four(row, b, x): of
 * VEC_WIDTH rows, a lane each, values b to b + 3.
 */
#pragma once

#include <string.h>

#include "backends/cpu/kernels.h"

#ifdef VEC_WIDTH /* the rest is a tier's: by itself this header has no vector */

#define WALK_COLS 4
#define WALK_SLAB 256 /* blocks of a row at a time, at most */
#define WALK_T    (VEC_WIDTH * WALK_SLAB + VEC_WIDTH)

/* Bytes ahead of the walk that are asked for: enough for DRAM, few enough to be still there. */
#define WALK_AHEAD 6144

/* Asks for the lines of bytes bytes that the walk will reach; spread over a group, never in bursts. */
INLINE void walk_ahead(const uint8_t *w, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        walk_prefetch((const void *)((uintptr_t)w + WALK_AHEAD + i));
}

/* Everything that a format's functions need to know of one slab of one call. */
struct walk {
    size_t bytes; /* of 1 << shift blocks, which lie together */
    size_t shift;
    size_t n; /* blocks of a row in this slab */
    size_t cols;
    const float *d; /* [cols][WALK_SLAB]: d_a */
};

INLINE size_t walk_bytes(const struct walk *k, size_t blocks)
{
    return blocks * k->bytes >> k->shift;
}

/* acc = fma(d_a[b], t[row][b], acc), b ascending, for up to VEC_WIDTH rows at once. */
INLINE void walk_chains(const float *t, size_t n, const float *d, size_t rows, bool first, float *y)
{
    vec acc = first ? vec_zero() : vec_load(y, rows);
    const float *row[VEC_WIDTH];

    for (size_t i = 0; i < VEC_WIDTH; i++)
        row[i] = t + (i < rows ? i : 0) * n;
    for (size_t b = 0; b < n; b += 4) {
        size_t left = n - b;
        vec x[4];

        walk_four(row, b, x);
        acc = vec_fma(vec_set1(d[b]), x[0], acc);
        if (left > 1)
            acc = vec_fma(vec_set1(d[b + 1]), x[1], acc);
        if (left > 2)
            acc = vec_fma(vec_set1(d[b + 2]), x[2], acc);
        if (left > 3)
            acc = vec_fma(vec_set1(d[b + 3]), x[3], acc);
    }
    vec_store(y, rows, acc);
}

/*
 * The blocks of one run, which begins at the first block of a row of the slab.
 * group(arg, w, at, t): at = index of the first block within its row; writes
 * t[c * WALK_T + 0 … VEC_WIDTH - 1].
 */
typedef void walk_group_fn(const void *arg, const uint8_t *w, size_t at, float *t);

INLINE void walk_run(const struct walk *k, walk_group_fn *group, const void *arg, const uint8_t *w,
                     size_t count, float *t)
{
    size_t step = VEC_WIDTH % k->n, at = 0;
    uint8_t rest[VEC_WIDTH * 256];

    for (size_t i = 0; i < count; i += VEC_WIDTH, w += walk_bytes(k, VEC_WIDTH)) {
        if (count - i < VEC_WIDTH) {
            /* The last blocks of the run: nothing may be read behind them. */
            memset(rest, 0, walk_bytes(k, VEC_WIDTH));
            memcpy(rest, w, walk_bytes(k, count - i));
            w = rest;
        }
        group(arg, w, at, t + i);
        at += step;
        at -= at >= k->n ? k->n : 0;
    }
}

INLINE void walk_slab(const struct matvec *m, const struct walk *k, walk_group_fn *group,
                      const void *arg, size_t from)
{
    float t[WALK_COLS * WALK_T];
    bool whole = walk_bytes(k, k->n) == m->row_bytes;

    for (size_t r = 0; r < m->rows; r += VEC_WIDTH) {
        size_t rows = m->rows - r < VEC_WIDTH ? m->rows - r : VEC_WIDTH;
        const uint8_t *w = (const uint8_t *)m->w + r * m->row_bytes + walk_bytes(k, from);

        if (whole)
            walk_run(k, group, arg, w, rows * k->n, t);
        else
            for (size_t i = 0; i < rows; i++)
                walk_run(k, group, arg, w + i * m->row_bytes, k->n, t + i * k->n);
        for (size_t c = 0; c < k->cols; c++)
            walk_chains(t + c * WALK_T, k->n, k->d + c * WALK_SLAB, rows, from == 0,
                        m->y + c * m->y_stride + r);
    }
}

#endif
