/*
 * attn_tiles - the order of work in the attention kernels of the vector tiers.
 *
 * Few queries meet keys and values where those lie, each vector decoded on its
 * way into the sums.  Many meet panels, some KiB of keys decoded to f32 once and
 * transposed, for all queries, and then tiles of values likewise, where decoding
 * costs more than loading.  Every way every sum sees the same terms in the same
 * order, that of scalar/attn_scalar.h.
 *
 * A tier includes this after its vector (columns.h tells of vec) and after it has defined
 *
 *   ATTN_KEYS             n_q queries take ATTN_KEYS / n_q keys at a time; at most 16
 *   ATTN_PANEL            keys of a panel
 *   ATTN_PASS             queries that meet a panel together
 *   ATTN_GROUP            queries that share a load of a value, at most: 4 or 8
 *   attn_load_fn          elements of a row from d on, as the tier's vector
 *   attn_block            scores of n_q queries and ATTN_KEYS / n_q keys
 *   attn_fill_panel       keys into a panel
 *   attn_score            what is kept of a vector of sums of a panel until attn_weights
 *   attn_weights          the scores of one query to weights; its m and l
 *   attn_add_rows         weighted rows into some elements of n_q outputs
 *   attn_decode           some elements of a row to f32, padded with zeros to a multiple of sixteen
 *   attn_load_tile        the attn_load_fn of a tile of such rows
 *
 * and makes its kernels with ATTN_KERNEL().  Everything is inlined by force, for
 * n_q and the way to load must be constants in the innermost loops.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "common/alloc.h"

#define ATTN_BATCH 64 /* queries that share panels and tiles */
#define ATTN_ROWS  64 /* of a tile of values, and its columns: half of a small L1 */
#define ATTN_COLS  64
#define ATTN_AHEAD 2048 /* bytes */
#define ATTN_COLD  16   /* queries at most that find the cache in memory, not in L2 */

/* Queries that go together. */
struct attn_group {
    size_t q;                 /* the first */
    size_t n_q;               /* 1, 2, 4 or 8 */
    struct attn_span span[8]; /* of each */
    struct attn_span any;     /* keys that one of them sees */
    struct attn_span all;     /* keys that all of them see; empty when from ≥ to */
    float *s;                 /* [n_q][KERNELS_CHUNK] scores, then weights */
};

/* Keys or values: in the cache, or some of them in a tile. */
struct attn_rows {
    const char *at; /* of key 0 of the chunk */
    size_t stride;  /* bytes */
};

static inline struct attn_span attn_span_of(const struct attn *a, size_t q)
{
    return a->spans ? a->spans[q] : (struct attn_span){(uint32_t)a->from, (uint32_t)a->to};
}

static inline void attn_group_init(const struct attn *a, size_t q, size_t n_q, float *s,
                                   struct attn_group *g)
{
    *g = (struct attn_group){
        .q = q, .n_q = n_q, .any = {KERNELS_CHUNK, 0}, .all = {0, KERNELS_CHUNK}, .s = s};
    for (size_t i = 0; i < n_q; i++) {
        struct attn_span span = attn_span_of(a, q + i);

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

/* Elements [d, end) of the values [from, to) into n_q outputs, beginning with that of query i. */
ATTN_INLINE void attn_values(const struct attn *a, const struct attn_group *g, size_t i, size_t n_q,
                             size_t d, size_t end, size_t from, size_t to, struct attn_rows v,
                             attn_load_fn *load)
{
    if (from < to)
        attn_add_rows(a, a->o + (g->q + i) * a->v_dim, n_q, d, end, g->s + i * KERNELS_CHUNK + from,
                      v.at + from * v.stride, v.stride, to - from, load);
}

/*
 * The values of keys [from, to).  Keys that only some queries see are added
 * for those alone, in order before and after what is common: a weight of 0
 * would spoil an infinite value.
 */
ATTN_INLINE void attn_group_values(const struct attn *a, const struct attn_group *g, size_t n_q,
                                   size_t d, size_t end, size_t from, size_t to, struct attn_rows v,
                                   attn_load_fn *load)
{
    for (size_t i = 0; i < n_q && n_q > 1; i++)
        attn_values(a, g, i, 1, d, end, MAX(from, g->span[i].from),
                    MIN(to, MIN(g->span[i].to, g->all.from)), v, load);
    attn_values(a, g, 0, n_q, d, end, MAX(from, g->all.from), MIN(to, g->all.to), v, load);
    for (size_t i = 0; i < n_q && n_q > 1; i++)
        attn_values(a, g, i, 1, d, end, MAX(from, MAX(g->span[i].from, g->all.to)),
                    MIN(to, g->span[i].to), v, load);
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
    attn_group_values(a, &g, n_q, 0, a->v_dim, g.any.from, g.any.to,
                      (struct attn_rows){a->v, a->v_stride}, load);
}

/* -- many: panels of keys, tiles of values ------------------------------------------------------ */

/* Queries that meet a panel together, and the keys that one of them sees. */
struct attn_pass {
    size_t q, n_q;
    struct attn_span any;
};

static inline struct attn_pass attn_pass_of(const struct attn *a, size_t q, size_t n_q)
{
    struct attn_pass pass = {q, n_q, {KERNELS_CHUNK, 0}};

    for (size_t i = q; i < q + n_q; i++) {
        struct attn_span span = attn_span_of(a, i);

        pass.any.from = MIN(pass.any.from, span.from);
        pass.any.to = MAX(pass.any.to, span.to);
    }
    return pass;
}

/*
 * Queries q … q + n - 1 in passes of ATTN_PASS; the last begins early, where
 * there are as many, and some scores are computed again, to the same bits.
 */
static inline size_t attn_passes(const struct attn *a, size_t q, size_t n,
                                 struct attn_pass pass[ATTN_BATCH])
{
    size_t n_q = n >= ATTN_PASS ? ATTN_PASS : 1, count = 0;

    for (size_t i = 0; i < n; i += n_q)
        pass[count++] = attn_pass_of(a, q + MIN(i, n - n_q), n_q);
    return count;
}

/*
 * Asks for part i of n of the rows [j, j + n_rows), which are wanted next.
 * Inlined by force: gcc drops calls of a function that does nothing but prefetch.
 */
ATTN_INLINE void attn_ahead(const void *rows, size_t stride, size_t j, size_t n_rows, size_t i,
                            size_t n)
{
    uintptr_t at = (uintptr_t)rows + j * stride, bytes = n_rows * stride;

    for (uintptr_t to = at + bytes * (i + 1) / n, p = at + bytes * i / n; p < to; p += 64)
        __builtin_prefetch((const void *)p, 0, 2);
}

/*
 * The scores of n_q queries, ATTN_PASS at most, and the keys of a panel, two
 * vectors.  Partial sums come in the order in which the tree adds them: after
 * turn t those of all pairs, fours … that it completes are added up, and wait
 * for their sisters.
 */
ATTN_INLINE void attn_panel_scores(const struct attn *a, const float *query, size_t n_q,
                                   const float *panel, float *s)
{
    _Alignas(64) float wait[4][ATTN_PASS][ATTN_PANEL];
    size_t steps = attn_steps(a->head_dim), depth = 0;
    vec lo[ATTN_PASS], hi[ATTN_PASS];

#pragma GCC unroll 1
    for (size_t t = 0; t < 16; t++) {
        const float *key = panel + t * steps * ATTN_PANEL;

        for (size_t i = 0; i < n_q; i++)
            lo[i] = hi[i] = vec_zero();
#pragma GCC unroll 1
        for (size_t d = attn_turn[t]; d < a->head_dim; d += 16, key += ATTN_PANEL) {
            vec kl = vec_loadu(key), kh = vec_loadu(key + VEC_WIDTH);

            for (size_t i = 0; i < n_q; i++) {
                vec q = vec_set1(query[i * a->q_stride + d]);

                lo[i] = vec_fma(q, kl, lo[i]);
                hi[i] = vec_fma(q, kh, hi[i]);
            }
        }
#pragma GCC unroll 1
        for (size_t done = t; done & 1; done >>= 1) {
            depth--;
            for (size_t i = 0; i < n_q; i++) {
                lo[i] = vec_add(vec_loadu(wait[depth][i]), lo[i]);
                hi[i] = vec_add(vec_loadu(wait[depth][i] + VEC_WIDTH), hi[i]);
            }
        }
        if (t == 15)
            break;
        for (size_t i = 0; i < n_q; i++) {
            vec_storeu(wait[depth][i], lo[i]);
            vec_storeu(wait[depth][i] + VEC_WIDTH, hi[i]);
        }
        depth++;
    }
    for (size_t i = 0; i < n_q; i++) {
        vec_storeu(s + i * KERNELS_CHUNK, attn_score(a, lo[i]));
        vec_storeu(s + i * KERNELS_CHUNK + VEC_WIDTH, attn_score(a, hi[i]));
    }
}

/* Scores of the queries from q on, to s. */
ATTN_INLINE void attn_scores(const struct attn *a, size_t q, const struct attn_pass *pass,
                             size_t n_passes, struct attn_span any, float *panel, float *s,
                             attn_load_fn *load)
{
    for (size_t j = any.from & ~(size_t)(ATTN_PANEL - 1); j < any.to; j += ATTN_PANEL) {
        attn_fill_panel(a, j, any, panel, load);
        for (size_t i = 0; i < n_passes; i++) {
            const float *query = a->q + pass[i].q * a->q_stride;
            float *to = s + (pass[i].q - q) * KERNELS_CHUNK + j;

            if (j >= pass[i].any.to || j + ATTN_PANEL <= pass[i].any.from)
                continue;
            attn_ahead(a->k, a->k_stride, j + ATTN_PANEL, ATTN_PANEL, i, n_passes);
            attn_ahead(a->v, a->v_stride, j, ATTN_PANEL, i, n_passes);
            if (pass[i].n_q == ATTN_PASS)
                attn_panel_scores(a, query, ATTN_PASS, panel, to);
            else
                attn_panel_scores(a, query, 1, panel, to);
        }
    }
}

/* Elements [d, d_end) of the values [j, end), as a tile; those outside `any` are not touched. */
ATTN_INLINE void attn_fill(const struct attn *a, size_t d, size_t d_end, size_t j, size_t end,
                           struct attn_span any, float *tile, attn_load_fn *load)
{
    for (j = MAX(j, (size_t)any.from); j < MIN(end, (size_t)any.to); j++)
        attn_decode((const char *)a->v + j * a->v_stride, d, d_end,
                    tile + j % ATTN_ROWS * ATTN_COLS, load);
}

ATTN_INLINE void attn_tile_values(const struct attn *a, const struct attn_group *g, size_t n_q,
                                  size_t d, size_t d_end, size_t j, size_t end, const float *tile)
{
    struct attn_rows v = {(const char *)((uintptr_t)tile - (j * ATTN_COLS + d) * sizeof(float)),
                          ATTN_COLS * sizeof(float)};

    attn_group_values(a, g, n_q, d, d_end, j, end, v, attn_load_tile);
}

ATTN_INLINE void attn_tiles(const struct attn *a, const struct attn_group *g, size_t n_groups,
                            struct attn_span any, float *tile, attn_load_fn *load)
{
    for (size_t d = 0; d < a->v_dim; d += ATTN_COLS)
        for (size_t j = any.from & ~(size_t)(ATTN_ROWS - 1); j < any.to; j += ATTN_ROWS) {
            size_t end = j + ATTN_ROWS, d_end = MIN(d + ATTN_COLS, a->v_dim);

            attn_fill(a, d, d_end, j, end, any, tile, load);
            for (size_t i = 0; i < n_groups; i++)
                switch (g[i].n_q) {
                case 8: attn_tile_values(a, &g[i], 8, d, d_end, j, end, tile); break;
                case 4: attn_tile_values(a, &g[i], 4, d, d_end, j, end, tile); break;
                case 2: attn_tile_values(a, &g[i], 2, d, d_end, j, end, tile); break;
                default: attn_tile_values(a, &g[i], 1, d, d_end, j, end, tile); break;
                }
        }
}

/* Values that are decoded as fast as they are loaded stay where they are. */
ATTN_INLINE void attn_no_tiles(const struct attn *a, const struct attn_group *g, size_t n_groups,
                               attn_load_fn *load)
{
    struct attn_rows v = {a->v, a->v_stride};

    for (size_t i = 0; i < n_groups; i++) {
        size_t from = g[i].any.from, to = g[i].any.to;

        switch (g[i].n_q) {
        case 8: attn_group_values(a, &g[i], 8, 0, a->v_dim, from, to, v, load); break;
        case 4: attn_group_values(a, &g[i], 4, 0, a->v_dim, from, to, v, load); break;
        case 2: attn_group_values(a, &g[i], 2, 0, a->v_dim, from, to, v, load); break;
        default: attn_group_values(a, &g[i], 1, 0, a->v_dim, from, to, v, load); break;
        }
    }
}

static inline size_t attn_group_size(size_t n)
{
    size_t size = ATTN_GROUP;

    while (size > n)
        size /= 2;
    return size;
}

/* Queries q … q + n - 1, at most ATTN_BATCH. */
ATTN_INLINE void attn_many(const struct attn *a, size_t q, size_t n, bool tiles, attn_load_fn *load)
{
    _Alignas(64) float s[ATTN_BATCH * KERNELS_CHUNK];
    _Alignas(64) float tile[ATTN_PANEL * KERNELS_HEAD_MAX];
    struct attn_pass pass[ATTN_BATCH];
    struct attn_group g[ATTN_BATCH / ATTN_GROUP + 3];
    struct attn_span any = {KERNELS_CHUNK, 0};
    size_t n_groups = 0, n_passes;

    for (size_t i = 0; i < n; i += g[n_groups++].n_q) {
        attn_group_init(a, q + i, attn_group_size(n - i), s + i * KERNELS_CHUNK, &g[n_groups]);
        any.from = MIN(any.from, g[n_groups].any.from);
        any.to = MAX(any.to, g[n_groups].any.to);
    }
    n_passes = attn_passes(a, q, n, pass);
    attn_scores(a, q, pass, n_passes, any, tile, s, load);
    for (size_t i = 0; i < n; i++)
        attn_weights(a, q + i, attn_span_of(a, q + i), s + i * KERNELS_CHUNK);
    if (tiles)
        attn_tiles(a, g, n_groups, any, tile, load);
    else
        attn_no_tiles(a, g, n_groups, load);
}

/* Fewer keys than a block takes are padded in a tile. */
static inline bool attn_is_short(const struct attn *a)
{
    for (size_t q = 0; q < a->n_q; q++) {
        struct attn_span span = attn_span_of(a, q);

        if (span.from + ATTN_KEYS > span.to)
            return true;
    }
    return false;
}

/* Queries that meet the cache where it lies, at most. */
#define ATTN_FEW 8

/*
 * The kernel of a format, its values through tiles or not.  Every shape of the
 * inner loops is a function of its own, or gcc spills sums of one for another.
 */
#define ATTN_KERNEL(fmt, tier, load, tiles)                                                        \
    static __attribute__((noinline)) void many(const struct attn *a)                               \
    {                                                                                              \
        for (size_t q = 0; q < a->n_q; q += ATTN_BATCH)                                            \
            attn_many(a, q, MIN((size_t)ATTN_BATCH, a->n_q - q), tiles, load);                     \
    }                                                                                              \
    static __attribute__((noinline)) void direct4(const struct attn *a, size_t q)                  \
    {                                                                                              \
        attn_direct(a, q, 4, load);                                                                \
    }                                                                                              \
    static __attribute__((noinline)) void direct2(const struct attn *a, size_t q)                  \
    {                                                                                              \
        attn_direct(a, q, 2, load);                                                                \
    }                                                                                              \
    static __attribute__((noinline)) void direct1(const struct attn *a, size_t q)                  \
    {                                                                                              \
        attn_direct(a, q, 1, load);                                                                \
    }                                                                                              \
    void attn_##fmt##_##tier(const struct attn *a)                                                 \
    {                                                                                              \
        size_t q = 0;                                                                              \
                                                                                                   \
        memset(a->o, 0, a->n_q * a->v_dim * sizeof(float));                                        \
        if (a->n_q > ATTN_FEW || attn_is_short(a)) {                                               \
            many(a);                                                                               \
            return;                                                                                \
        }                                                                                          \
        for (; q + 4 <= a->n_q; q += 4)                                                            \
            direct4(a, q);                                                                         \
        for (; q + 2 <= a->n_q; q += 2)                                                            \
            direct2(a, q);                                                                         \
        for (; q < a->n_q; q++)                                                                    \
            direct1(a, q);                                                                         \
    }

#endif
