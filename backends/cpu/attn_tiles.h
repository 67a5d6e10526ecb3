/*
 * attn_tiles - the order of work in the attention kernels of the vector tiers.
 *
 * Queries go in groups of four, two or one.  Few of them meet keys and values
 * where those lie, each vector decoded on its way into the sums; more of them
 * meet tiles: some KiB of keys (then of values) decoded to f32 once, in L1,
 * for all groups.  Both ways every sum sees the same terms in the same order,
 * that of scalar/attn_scalar.h.
 *
 * A tier includes this after it has defined
 *
 *   ATTN_KEYS             n_q queries take ATTN_KEYS / n_q keys at a time; at most 16
 *   attn_load_fn          elements of a row from d on, as the tier's vector
 *   attn_block            scores of n_q queries and ATTN_KEYS / n_q keys
 *   attn_weights          the scores of one query to weights; its m and l
 *   attn_add_rows         weighted rows into the outputs of n_q queries
 *   attn_decode           one row to f32, padded with zeros to a multiple of sixteen
 *   attn_load_tile        the attn_load_fn of such rows
 *
 * and makes its kernels with ATTN_KERNEL().  Everything is inlined by force, for
 * n_q and the way to load must be constants in the innermost loops.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "common/alloc.h"

#define ATTN_BATCH 32   /* queries that share a tile */
#define ATTN_TILE  4096 /* floats: half of a small L1, or sixteen rows */
#define ATTN_AHEAD 2048 /* bytes */
#define ATTN_COLD  16   /* queries at most that find the cache in memory, not in L2 */

/* Queries that go together. */
struct attn_group {
    size_t q;                 /* the first */
    size_t n_q;               /* 1, 2 or 4 */
    struct attn_span span[4]; /* of each */
    struct attn_span any;     /* keys that one of them sees */
    struct attn_span all;     /* keys that all of them see; empty when from ≥ to */
    float *s;                 /* [n_q][KERNELS_CHUNK] scores, then weights */
};

/* Keys or values: in the cache, or some of them in a tile. */
struct attn_rows {
    const char *at; /* of key 0 of the chunk */
    size_t stride;  /* bytes */
};

static inline void attn_group_init(const struct attn *a, size_t q, size_t n_q, float *s,
                                   struct attn_group *g)
{
    *g = (struct attn_group){
        .q = q, .n_q = n_q, .any = {KERNELS_CHUNK, 0}, .all = {0, KERNELS_CHUNK}, .s = s};
    for (size_t i = 0; i < n_q; i++) {
        struct attn_span span = {(uint32_t)a->from, (uint32_t)a->to};

        if (a->spans)
            span = a->spans[q + i];
        g->span[i] = span;
        g->any.from = MIN(g->any.from, span.from);
        g->any.to = MAX(g->any.to, span.to);
        g->all.from = MAX(g->all.from, span.from);
        g->all.to = MIN(g->all.to, span.to);
    }
    if (g->all.from >= g->all.to)
        g->all = (struct attn_span){KERNELS_CHUNK, KERNELS_CHUNK};
}

#ifdef ATTN_KEYS /* the rest is a tier's: by itself this header has nothing to load with */

/* The values [from, to) into n_q outputs, beginning with that of query i of the group. */
ATTN_INLINE void attn_values(const struct attn *a, const struct attn_group *g, size_t i, size_t n_q,
                             size_t from, size_t to, struct attn_rows v, attn_load_fn *load)
{
    if (from < to)
        attn_add_rows(a, a->o + (g->q + i) * a->v_dim, n_q, g->s + i * KERNELS_CHUNK + from,
                      v.at + from * v.stride, v.stride, to - from, load);
}

/*
 * The values of keys [from, to).  Keys that only some queries see are added
 * for those alone, in order before and after what is common: a weight of 0
 * would spoil an infinite value.
 */
ATTN_INLINE void attn_group_values(const struct attn *a, const struct attn_group *g, size_t n_q,
                                   size_t from, size_t to, struct attn_rows v, attn_load_fn *load)
{
    for (size_t i = 0; i < n_q && n_q > 1; i++)
        attn_values(a, g, i, 1, MAX(from, g->span[i].from),
                    MIN(to, MIN(g->span[i].to, g->all.from)), v, load);
    attn_values(a, g, 0, n_q, MAX(from, g->all.from), MIN(to, g->all.to), v, load);
    for (size_t i = 0; i < n_q && n_q > 1; i++)
        attn_values(a, g, i, 1, MAX(from, MAX(g->span[i].from, g->all.to)), MIN(to, g->span[i].to),
                    v, load);
}

/* -- a few queries: the cache comes from memory ------------------------------------------------ */

/*
 * Asks for keys some KiB ahead, and for the values, which come next.  Inlined
 * by force: gcc drops calls of a function that does nothing but prefetch.
 */
ATTN_INLINE void attn_prefetch(const struct attn *a, size_t j, size_t n, size_t to)
{
    const char *key = (const char *)a->k + j * a->k_stride + ATTN_AHEAD;
    const char *value = (const char *)a->v + j * a->v_stride;
    const char *end = (const char *)a->k + to * a->k_stride;

    for (size_t at = 0; at < n * a->k_stride && key + at < end; at += 64)
        __builtin_prefetch(key + at, 0, 3);
    for (size_t at = 0; at < n * a->v_stride; at += 64)
        __builtin_prefetch(value + at, 0, 3);
}

ATTN_INLINE void attn_direct(const struct attn *a, size_t q, size_t n_q, attn_load_fn *load)
{
    _Alignas(64) float s[4 * KERNELS_CHUNK];
    size_t n_k = ATTN_KEYS / n_q;
    struct attn_group g;

    attn_group_init(a, q, n_q, s, &g);
    for (size_t j = g.any.from; j < g.any.to; j += n_k) {
        /* The last block begins early: some scores are computed again, to the same bits. */
        size_t j0 = MIN(j, g.any.to - n_k);

        if (q == 0 && a->n_q <= ATTN_COLD)
            attn_prefetch(a, j0, n_k, g.any.to);
        attn_block(a, a->q + q * a->q_stride, n_q, (const char *)a->k + j0 * a->k_stride,
                   a->k_stride, s + j0, load);
    }
    for (size_t i = 0; i < n_q; i++)
        attn_weights(a, q + i, g.span[i], s + i * KERNELS_CHUNK);
    attn_group_values(a, &g, n_q, g.any.from, g.any.to, (struct attn_rows){a->v, a->v_stride},
                      load);
}

/* -- many: tiles -------------------------------------------------------------------------------- */

/* Floats of a row in a tile, and rows of a tile: a multiple of sixteen. */
static inline size_t attn_padded(size_t dim)
{
    return (dim + 15) & ~(size_t)15;
}

static inline size_t attn_tile_rows(size_t dim)
{
    return MAX((size_t)16, ATTN_TILE / attn_padded(dim) & ~(size_t)15);
}

/* Rows [j, end) of the chunk that lie in `any`, decoded; the others are zeros. */
ATTN_INLINE void attn_fill(const char *rows, size_t stride, size_t dim, size_t j, size_t end,
                           struct attn_span any, float *tile, attn_load_fn *load)
{
    size_t width = attn_padded(dim);

    for (; j < end; j++, tile += width) {
        const char *row = rows + j * stride;

        if (j < any.from || j >= any.to) {
            memset(tile, 0, width * sizeof(float));
            continue;
        }
        for (size_t at = 0; at < stride; at += 64)
            __builtin_prefetch((const void *)((uintptr_t)row + ATTN_AHEAD + at), 0, 3);
        attn_decode(row, dim, tile, load);
    }
}

/* What of a tile that begins at key j a group sees, in whole blocks of its keys. */
ATTN_INLINE void attn_tile_scores(const struct attn *a, const struct attn_group *g, size_t n_q,
                                  size_t j, size_t end, const float *tile)
{
    size_t n_k = ATTN_KEYS / n_q, stride = attn_padded(a->head_dim) * sizeof(float);
    size_t at = MAX((size_t)g->any.from, j) & ~(n_k - 1), to = MIN((size_t)g->any.to, end);

    for (; at < to; at += n_k)
        attn_block(a, a->q + g->q * a->q_stride, n_q, (const char *)tile + (at - j) * stride,
                   stride, g->s + at, attn_load_tile);
}

ATTN_INLINE void attn_tile_values(const struct attn *a, const struct attn_group *g, size_t n_q,
                                  size_t j, size_t end, const float *tile)
{
    size_t stride = attn_padded(a->v_dim) * sizeof(float);
    struct attn_rows v = {(const char *)((uintptr_t)tile - j * stride), stride};

    attn_group_values(a, g, n_q, j, end, v, attn_load_tile);
}

typedef void attn_tile_fn(const struct attn *a, const struct attn_group *g, size_t n_q, size_t j,
                          size_t end, const float *tile);

ATTN_INLINE void attn_each_group(const struct attn *a, const struct attn_group *g, size_t n,
                                 size_t j, size_t end, const float *tile, attn_tile_fn *fn)
{
    for (size_t i = 0; i < n; i++)
        switch (g[i].n_q) {
        case 4: fn(a, &g[i], 4, j, end, tile); break;
        case 2: fn(a, &g[i], 2, j, end, tile); break;
        default: fn(a, &g[i], 1, j, end, tile); break;
        }
}

/* Queries q … q + n - 1, at most ATTN_BATCH. */
ATTN_INLINE void attn_tiled(const struct attn *a, size_t q, size_t n, attn_load_fn *load)
{
    _Alignas(64) float s[ATTN_BATCH * KERNELS_CHUNK];
    _Alignas(64) float tile[16 * KERNELS_HEAD_MAX];
    struct attn_group g[ATTN_BATCH / 4 + 2];
    struct attn_span any = {KERNELS_CHUNK, 0};
    size_t n_groups = 0, rows, first;

    for (size_t i = 0; i < n; i += g[n_groups++].n_q) {
        attn_group_init(a, q + i,
                        n - i >= 4   ? 4
                        : n - i >= 2 ? 2
                                     : 1,
                        s + i * KERNELS_CHUNK, &g[n_groups]);
        any.from = MIN(any.from, g[n_groups].any.from);
        any.to = MAX(any.to, g[n_groups].any.to);
    }
    first = any.from & ~(size_t)15;

    rows = attn_tile_rows(a->head_dim);
    for (size_t j = first; j < any.to; j += rows) {
        size_t end = MIN(j + rows, (any.to + (size_t)15) & ~(size_t)15);

        attn_fill(a->k, a->k_stride, a->head_dim, j, end, any, tile, load);
        attn_each_group(a, g, n_groups, j, end, tile, attn_tile_scores);
    }
    for (size_t i = 0; i < n_groups; i++)
        for (size_t k = 0; k < g[i].n_q; k++)
            attn_weights(a, g[i].q + k, g[i].span[k], g[i].s + k * KERNELS_CHUNK);
    rows = attn_tile_rows(a->v_dim);
    for (size_t j = first; j < any.to; j += rows) {
        size_t end = MIN(j + rows, (size_t)any.to);

        attn_fill(a->v, a->v_stride, a->v_dim, j, end, any, tile, load);
        attn_each_group(a, g, n_groups, j, end, tile, attn_tile_values);
    }
}

/* Fewer keys than a block takes are padded in a tile. */
static inline bool attn_is_short(const struct attn *a)
{
    for (size_t q = 0; q < a->n_q; q++) {
        struct attn_span span = {(uint32_t)a->from, (uint32_t)a->to};

        if (a->spans)
            span = a->spans[q];
        if (span.from + ATTN_KEYS > span.to)
            return true;
    }
    return false;
}

/* Queries that meet the cache where it lies, at most: decoding f16 again costs less than a tile. */
#define ATTN_ANY 1000000
#define ATTN_FEW 8

/* The kernel of a format; the tiles apart, as the registers of the other loops suffer from them. */
#define ATTN_KERNEL(fmt, tier, load, direct)                                                       \
    static __attribute__((noinline)) void many(const struct attn *a)                               \
    {                                                                                              \
        for (size_t q = 0; q < a->n_q; q += ATTN_BATCH)                                            \
            attn_tiled(a, q, MIN((size_t)ATTN_BATCH, a->n_q - q), load);                           \
    }                                                                                              \
    void attn_##fmt##_##tier(const struct attn *a)                                                 \
    {                                                                                              \
        size_t q = 0;                                                                              \
                                                                                                   \
        memset(a->o, 0, a->n_q * a->v_dim * sizeof(float));                                        \
        if (a->n_q > (direct) || attn_is_short(a)) {                                               \
            many(a);                                                                               \
            return;                                                                                \
        }                                                                                          \
        for (; q + 4 <= a->n_q; q += 4)                                                            \
            attn_direct(a, q, 4, load);                                                            \
        for (; q + 2 <= a->n_q; q += 2)                                                            \
            attn_direct(a, q, 2, load);                                                            \
        for (; q < a->n_q; q++)                                                                    \
            attn_direct(a, q, 1, load);                                                            \
    }

#endif
