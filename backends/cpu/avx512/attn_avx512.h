/*
 * attn_avx512 - the attention of one chunk, for any format that can decode
 * sixteen elements of a row.
 *
 * One, two or four queries at a time meet all keys and then all values; each
 * vector is decoded on its way into the sums.  A lane is a partial sum of a
 * score, then a key, then an element of the output, so that every sum has the
 * order of scalar/attn_scalar.h.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"
#include "common/alloc.h"

#define ATTN_ALL    ((__mmask16)0xffff)
#define ATTN_AHEAD  2048 /* bytes */
#define ATTN_COLD   16   /* queries at most */
#define ATTN_INLINE static inline __attribute__((always_inline))

/* Elements d … d + 15 of a row, those of the mask and zeros; blocks have whole vectors only. */
typedef __m512 attn_load_fn(const void *row, size_t d, __mmask16 mask);

/* Queries that go together. */
struct attn_group {
    const struct attn *a;
    size_t q;                 /* the first */
    struct attn_span span[4]; /* of each */
    struct attn_span any;     /* keys that one of them sees */
    struct attn_span all;     /* keys that all of them see; empty when from ≥ to */
    float *s;                 /* [n_q][KERNELS_CHUNK] scores, then weights */
};

/* out lane i = kernels_tree16(v[i]). */
static inline __m512 tree16x16(const __m512 v[16])
{
    __m512 e[4], p, q;

    for (int i = 0; i < 4; i++) {
        __m512 c = _mm512_add_ps(_mm512_shuffle_f32x4(v[i], v[4 + i], 0x44),
                                 _mm512_shuffle_f32x4(v[i], v[4 + i], 0xee));
        __m512 d = _mm512_add_ps(_mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0x44),
                                 _mm512_shuffle_f32x4(v[8 + i], v[12 + i], 0xee));

        e[i] = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x88), _mm512_shuffle_f32x4(c, d, 0xdd));
    }
    p = _mm512_add_ps(_mm512_shuffle_ps(e[0], e[1], 0x44), _mm512_shuffle_ps(e[0], e[1], 0xee));
    q = _mm512_add_ps(_mm512_shuffle_ps(e[2], e[3], 0x44), _mm512_shuffle_ps(e[2], e[3], 0xee));
    return _mm512_add_ps(_mm512_shuffle_ps(p, q, 0x88), _mm512_shuffle_ps(p, q, 0xdd));
}

static inline __m512 attn_cap(const struct attn *a, __m512 s)
{
    s = _mm512_mul_ps(s, _mm512_set1_ps(a->scale));
    if (a->soft_cap != 0.0f)
        s = _mm512_mul_ps(tanh16(_mm512_div_ps(s, _mm512_set1_ps(a->soft_cap))),
                          _mm512_set1_ps(a->soft_cap));
    return s;
}

/*
 * The elements d … d + 15 of n_q queries against 16 / n_q keys, into the sums
 * of 16 scores.  n_q is a constant of the caller and all loops unroll.
 */
ATTN_INLINE void attn_step(const struct attn *a, const float *query, size_t n_q, const char *key,
                           size_t stride, size_t d, __mmask16 m, __m512 acc[16], attn_load_fn *load)
{
    size_t n_k = 16 / n_q, stride3 = 3 * stride;
    __m512 qv[4];

    for (size_t i = 0; i < n_q; i++)
        qv[i] = _mm512_maskz_loadu_ps(m, query + i * a->q_stride + d);
    for (size_t j = 0; j < n_k; j += 4, key += 4 * stride) {
        __m512 kv[4] = {load(key, d, m), load(key + stride, d, m), load(key + 2 * stride, d, m),
                        load(key + stride3, d, m)};

        for (size_t k = 0; k < 4; k++)
            for (size_t i = 0; i < n_q; i++)
                acc[i * n_k + j + k] = _mm512_fmadd_ps(qv[i], kv[k], acc[i * n_k + j + k]);
    }
}

/* The scores of n_q queries and 16 / n_q keys, stored at s, KERNELS_CHUNK from query to query. */
ATTN_INLINE void attn_block(const struct attn *a, const float *query, size_t n_q, const char *key,
                            size_t stride, float *s, attn_load_fn *load)
{
    __m512 acc[16], v;
    size_t d = 0;

    for (size_t i = 0; i < 16; i++)
        acc[i] = _mm512_setzero_ps();
    for (; d + 16 <= a->head_dim; d += 16)
        attn_step(a, query, n_q, key, stride, d, ATTN_ALL, acc, load);
    if (d < a->head_dim)
        attn_step(a, query, n_q, key, stride, d, tail16(a->head_dim - d), acc, load);
    v = attn_cap(a, tree16x16(acc));
    if (n_q == 1) {
        _mm512_storeu_ps(s, v);
    } else if (n_q == 2) {
        _mm256_storeu_ps(s, _mm512_castps512_ps256(v));
        _mm256_storeu_ps(s + KERNELS_CHUNK, _mm512_extractf32x8_ps(v, 1));
    } else {
        _mm_storeu_ps(s, _mm512_castps512_ps128(v));
        _mm_storeu_ps(s + KERNELS_CHUNK, _mm512_extractf32x4_ps(v, 1));
        _mm_storeu_ps(s + 2 * KERNELS_CHUNK, _mm512_extractf32x4_ps(v, 2));
        _mm_storeu_ps(s + 3 * KERNELS_CHUNK, _mm512_extractf32x4_ps(v, 3));
    }
}

static inline __mmask16 attn_mask(struct attn_span span, size_t j0)
{
    unsigned from = span.from > j0 ? span.from - (unsigned)j0 : 0;
    unsigned to = span.to > j0 ? span.to - (unsigned)j0 : 0;

    return (__mmask16)(tail16(to) & ~(from >= 16 ? 0xffffu : (1u << from) - 1));
}

/* Scores to weights, in place; keys that the query does not see get weight 0. */
static inline void attn_weights(const struct attn_group *g, size_t i)
{
    struct attn_span span = g->span[i];
    size_t first = span.from & ~(size_t)15;
    float *s = g->s + i * KERNELS_CHUNK;
    __m512 m = _mm512_set1_ps(-INFINITY), l = _mm512_setzero_ps();
    float most;

    for (size_t j = first; j < span.to; j += 16)
        m = _mm512_mask_max_ps(m, attn_mask(span, j), _mm512_load_ps(s + j), m);
    most = _mm512_reduce_max_ps(m) + 0.0f;
    m = _mm512_set1_ps(most);
    for (size_t j = first; j < span.to; j += 16) {
        __m512 e = exp16(_mm512_sub_ps(_mm512_load_ps(s + j), m));

        e = _mm512_maskz_mov_ps(attn_mask(span, j), e);
        l = _mm512_add_ps(l, e);
        _mm512_store_ps(s + j, e);
    }
    g->a->m[g->q + i] = most;
    g->a->l[g->q + i] = tree16(l);
}

/*
 * Adds n weighted rows to 16 n_v elements, those of the mask, of n_q outputs.
 * n_q and n_v are constants of the caller and all loops but that of rows unroll.
 */
ATTN_INLINE void attn_add(const struct attn *a, float *o, size_t n_q, const float *weight,
                          const char *row, size_t stride, size_t n, size_t d, size_t n_v,
                          __mmask16 m, attn_load_fn *load)
{
    const char *end = row + n * stride;
    __m512 acc[4][8];

    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            acc[i][v] = _mm512_maskz_loadu_ps(m, o + i * a->v_dim + d + 16 * v);
    for (; row != end; row += stride, weight++)
        for (size_t v = 0; v < n_v; v++) {
            __m512 x = load(row, d + 16 * v, m);

            for (size_t i = 0; i < n_q; i++)
                acc[i][v] =
                    _mm512_fmadd_ps(_mm512_set1_ps(weight[i * KERNELS_CHUNK]), x, acc[i][v]);
        }
    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            _mm512_mask_storeu_ps(o + i * a->v_dim + d + 16 * v, m, acc[i][v]);
}

/* The same for whole outputs: as many elements at once as registers hold. */
ATTN_INLINE void attn_add_rows(const struct attn *a, float *o, size_t n_q, const float *weight,
                               const char *row, size_t stride, size_t n, attn_load_fn *load)
{
    size_t d = 0;

    for (; n_q < 4 && d + 128 <= a->v_dim; d += 128)
        attn_add(a, o, n_q, weight, row, stride, n, d, 8, ATTN_ALL, load);
    for (; d + 64 <= a->v_dim; d += 64)
        attn_add(a, o, n_q, weight, row, stride, n, d, 4, ATTN_ALL, load);
    for (; d < a->v_dim; d += 16)
        attn_add(a, o, n_q, weight, row, stride, n, d, 1, tail16(a->v_dim - d), load);
}

/* One key at a time, where there are fewer of them than a block has. */
ATTN_INLINE void attn_scores_short(const struct attn_group *g, size_t n_q, attn_load_fn *load)
{
    const struct attn *a = g->a;

    for (size_t i = 0; i < n_q; i++)
        for (size_t j = g->span[i].from; j < g->span[i].to; j++) {
            const char *key = (const char *)a->k + j * a->k_stride;
            const float *query = a->q + (g->q + i) * a->q_stride;
            __m512 acc = _mm512_setzero_ps();

            for (size_t d = 0; d < a->head_dim; d += 16) {
                __mmask16 m = tail16(a->head_dim - d);

                acc = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, query + d), load(key, d, m), acc);
            }
            acc = attn_cap(a, _mm512_set1_ps(tree16(acc)));
            g->s[i * KERNELS_CHUNK + j] = _mm512_cvtss_f32(acc);
        }
}

/*
 * A few queries find the cache in memory, not in L2: ask for keys some KiB
 * ahead, and for the values, which come next.  Inlined by force: gcc drops
 * calls of a function that does nothing but prefetch.
 */
ATTN_INLINE void attn_prefetch(const struct attn_group *g, size_t j, size_t n)
{
    const struct attn *a = g->a;
    const char *key = (const char *)a->k + j * a->k_stride + ATTN_AHEAD;
    const char *value = (const char *)a->v + j * a->v_stride;
    const char *end = (const char *)a->k + g->any.to * a->k_stride;

    for (size_t at = 0; at < n * a->k_stride && key + at < end; at += 64)
        _mm_prefetch(key + at, _MM_HINT_T0);
    for (size_t at = 0; at < n * a->v_stride; at += 64)
        _mm_prefetch(value + at, _MM_HINT_T0);
}

ATTN_INLINE void attn_scores(const struct attn_group *g, size_t n_q, attn_load_fn *load)
{
    const struct attn *a = g->a;
    size_t n_k = 16 / n_q;

    if (g->any.from + n_k > g->any.to) {
        attn_scores_short(g, n_q, load);
        return;
    }
    for (size_t j = g->any.from; j < g->any.to; j += n_k) {
        /* The last block begins early: some scores are computed again, to the same bits. */
        size_t j0 = MIN(j, g->any.to - n_k);

        if (g->q == 0 && a->n_q <= ATTN_COLD)
            attn_prefetch(g, j0, n_k);
        attn_block(a, a->q + g->q * a->q_stride, n_q, (const char *)a->k + j0 * a->k_stride,
                   a->k_stride, g->s + j0, load);
    }
}

/* The values [from, to) into n_q outputs, beginning with that of query i. */
ATTN_INLINE void attn_values(const struct attn_group *g, size_t i, size_t n_q, size_t from,
                             size_t to, attn_load_fn *load)
{
    const struct attn *a = g->a;

    if (from < to)
        attn_add_rows(a, a->o + (g->q + i) * a->v_dim, n_q, g->s + i * KERNELS_CHUNK + from,
                      (const char *)a->v + from * a->v_stride, a->v_stride, to - from, load);
}

/*
 * Keys that only some queries see are added for those alone, in order before
 * and after what is common: a weight of 0 would spoil an infinite value.
 */
ATTN_INLINE void attn_group(struct attn_group *g, size_t n_q, attn_load_fn *load)
{
    struct attn_span all = g->all;

    attn_scores(g, n_q, load);
    for (size_t i = 0; i < n_q; i++)
        attn_weights(g, i);
    if (all.from >= all.to)
        all = (struct attn_span){KERNELS_CHUNK, KERNELS_CHUNK};
    for (size_t i = 0; i < n_q && n_q > 1; i++)
        attn_values(g, i, 1, g->span[i].from, MIN(g->span[i].to, all.from), load);
    attn_values(g, 0, n_q, all.from, all.to, load);
    for (size_t i = 0; i < n_q && n_q > 1; i++)
        attn_values(g, i, 1, all.to, g->span[i].to, load);
}

static inline void attn_spans(struct attn_group *g, size_t n_q)
{
    const struct attn *a = g->a;

    g->any = (struct attn_span){KERNELS_CHUNK, 0};
    g->all = (struct attn_span){0, KERNELS_CHUNK};
    for (size_t i = 0; i < n_q; i++) {
        struct attn_span span = {(uint32_t)a->from, (uint32_t)a->to};

        if (a->spans)
            span = a->spans[g->q + i];
        g->span[i] = span;
        g->any.from = MIN(g->any.from, span.from);
        g->any.to = MAX(g->any.to, span.to);
        g->all.from = MAX(g->all.from, span.from);
        g->all.to = MIN(g->all.to, span.to);
    }
}

ATTN_INLINE void attn_avx512(const struct attn *a, attn_load_fn *load)
{
    _Alignas(64) float s[4 * KERNELS_CHUNK];
    struct attn_group g = {.a = a, .s = s};

    memset(a->o, 0, a->n_q * a->v_dim * sizeof(float));
    for (; g.q + 4 <= a->n_q; g.q += 4) {
        attn_spans(&g, 4);
        attn_group(&g, 4, load);
    }
    for (; g.q + 2 <= a->n_q; g.q += 2) {
        attn_spans(&g, 2);
        attn_group(&g, 2, load);
    }
    for (; g.q < a->n_q; g.q++) {
        attn_spans(&g, 1);
        attn_group(&g, 1, load);
    }
}
