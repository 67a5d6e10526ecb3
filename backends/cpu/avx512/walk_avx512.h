/*
 * walk_avx512 - the loop of every quantised matvec: a linear walk through the
 * file's bytes, sixteen blocks at a time, whatever row they belong to.
 *
 * A format's group function turns sixteen consecutive blocks into their f32
 * values before d_a, for each column.  Those go to t[row][block], in L1; after
 * sixteen rows the ordered fma chains of kernels.h run for the sixteen rows at
 * once, a lane each.  So one accumulator per output costs nothing, memory is
 * one stream, and the prefetch distance is the same everywhere.
 *
 * Rows longer than a slab are done slab by slab, the accumulators resting in y
 * meanwhile; rows with gaps between them row by row.
 */
#pragma once

#include <string.h>

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/cpu/kernels.h"

#define WALK_COLS 4
#define WALK_SLAB 256 /* blocks of a row at a time, at most */
#define WALK_T    (16 * WALK_SLAB + 16)

/* Bytes ahead of the walk that are asked for: enough for DRAM, few enough to be still there. */
#define WALK_AHEAD 6144

/* Asks for the lines of bytes bytes that the walk will reach; spread over a group, never in bursts. */
INLINE void walk_prefetch(const uint8_t *w, size_t bytes)
{
    for (size_t i = 0; i < bytes; i += 64)
        _mm_prefetch((const void *)((uintptr_t)w + WALK_AHEAD + i), _MM_HINT_T1);
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

/* acc = fma(d_a[b], t[row][b], acc), b ascending, for up to sixteen rows at once. */
INLINE void walk_chains(const float *t, size_t n, const float *d, size_t rows, bool first, float *y)
{
    __mmask16 mask = lanes_mask(rows);
    __m512 acc = first ? _mm512_setzero_ps() : _mm512_maskz_loadu_ps(mask, y);
    const float *row[16];
    size_t b = 0;

    for (size_t i = 0; i < 16; i++)
        row[i] = t + (i < rows ? i : 0) * n;
    for (; b < n; b += 4) {
        size_t left = n - b;
        __m512i x[4];

        for (size_t g = 0; g < 4; g++)
            x[g] = lanes_load(row[g] + b, row[g + 4] + b, row[g + 8] + b, row[g + 12] + b);
        lanes_transpose4(x);
        acc = _mm512_fmadd_ps(_mm512_set1_ps(d[b]), _mm512_castsi512_ps(x[0]), acc);
        if (left > 1)
            acc = _mm512_fmadd_ps(_mm512_set1_ps(d[b + 1]), _mm512_castsi512_ps(x[1]), acc);
        if (left > 2)
            acc = _mm512_fmadd_ps(_mm512_set1_ps(d[b + 2]), _mm512_castsi512_ps(x[2]), acc);
        if (left > 3)
            acc = _mm512_fmadd_ps(_mm512_set1_ps(d[b + 3]), _mm512_castsi512_ps(x[3]), acc);
    }
    _mm512_mask_storeu_ps(y, mask, acc);
}

/*
 * The blocks of one run, which begins at the first block of a row of the slab.
 * group(arg, w, at, t): at = index of the first block within its row; writes
 * t[c * WALK_T + 0 … 15].
 */
typedef void walk_group_fn(const void *arg, const uint8_t *w, size_t at, float *t);

INLINE void walk_run(const struct walk *k, walk_group_fn *group, const void *arg, const uint8_t *w,
                     size_t count, float *t)
{
    size_t step = 16 % k->n, at = 0;
    uint8_t rest[16 * 256];

    for (size_t i = 0; i < count; i += 16, w += walk_bytes(k, 16)) {
        if (count - i < 16) {
            /* The last blocks of the run: nothing may be read behind them. */
            memset(rest, 0, walk_bytes(k, 16));
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

    for (size_t r = 0; r < m->rows; r += 16) {
        size_t rows = m->rows - r < 16 ? m->rows - r : 16;
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

/* The kernel of a format: one body per number of columns, so that each is a loop without choices. */
#define WALK_KERNEL(fmt, run, group, of)                                                           \
    INLINE void group_1(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 1, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_2(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 2, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_3(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 3, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_4(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 4, arg, w, at, t);                                                               \
    }                                                                                              \
    void matvec_##fmt##_avx512(const struct matvec *m)                                             \
    {                                                                                              \
        switch (m->cols) {                                                                         \
        case 1: run(m, of, group_1); break;                                                        \
        case 2: run(m, of, group_2); break;                                                        \
        case 3: run(m, of, group_3); break;                                                        \
        default: run(m, of, group_4); break;                                                       \
        }                                                                                          \
    }
