/*
 * attn_avx512 - the attention of one chunk, for any format that can decode a
 * row into floats.
 *
 * Sixteen keys (then values) at a time are decoded into a tile in L1 and meet
 * up to ATTN_PASS queries there.  A lane is a partial sum of a score, then a
 * key, then an element of the output, so that every sum has the order of
 * scalar/attn_scalar.h.
 */
#pragma once

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"
#include "common/alloc.h"

#define ATTN_PASS 16 /* queries: their scores stay in L1 */
#define ATTN_TILE 16 /* keys: a zmm of scores */

/* Elements d … d + 15 of a row of n; those past n are zero. */
typedef __m512 attn_load_fn(const void *row, size_t d, size_t n);

struct attn_pass {
    const struct attn *a;
    size_t q0, n_q;
    struct attn_span span[ATTN_PASS];
    size_t lo, hi; /* keys that any query sees */
    size_t k_pad, v_pad;
    float *s;    /* [n_q][KERNELS_CHUNK] scores, then weights */
    float *tile; /* [ATTN_TILE][pad] */
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

/* n_q × n_k scores at once, 16 together; all loops unroll. */
static inline __attribute__((always_inline)) void attn_scores_block(const struct attn_pass *p,
                                                                    size_t q, size_t n_q, size_t j0,
                                                                    size_t k, size_t n_k)
{
    const struct attn *a = p->a;
    const float *query = a->q + (p->q0 + q) * a->q_stride;
    const float *key = p->tile + k * p->k_pad;
    __m512 acc[16], s;

    for (size_t i = 0; i < 16; i++)
        acc[i] = _mm512_setzero_ps();
    for (size_t d = 0; d < a->head_dim; d += 16) {
        __mmask16 m = tail16(a->head_dim - d);
        __m512 qv[4];

        for (size_t i = 0; i < n_q; i++)
            qv[i] = _mm512_maskz_loadu_ps(m, query + i * a->q_stride + d);
        for (size_t j = 0; j < n_k; j++) {
            __m512 kv = _mm512_load_ps(key + j * p->k_pad + d);

            for (size_t i = 0; i < n_q; i++)
                acc[i * n_k + j] = _mm512_fmadd_ps(qv[i], kv, acc[i * n_k + j]);
        }
    }
    s = attn_cap(a, tree16x16(acc));
    if (n_k == 16) {
        _mm512_store_ps(p->s + q * KERNELS_CHUNK + j0, s);
        return;
    }
    _mm_store_ps(p->s + q * KERNELS_CHUNK + j0 + k, _mm512_castps512_ps128(s));
    _mm_store_ps(p->s + (q + 1) * KERNELS_CHUNK + j0 + k, _mm512_extractf32x4_ps(s, 1));
    _mm_store_ps(p->s + (q + 2) * KERNELS_CHUNK + j0 + k, _mm512_extractf32x4_ps(s, 2));
    _mm_store_ps(p->s + (q + 3) * KERNELS_CHUNK + j0 + k, _mm512_extractf32x4_ps(s, 3));
}

/* Rows [j0, j0 + 16) of keys or values into the tile; those that nobody sees may not be there. */
static inline __attribute__((always_inline)) void attn_fill(const struct attn_pass *p,
                                                            const void *rows, size_t stride,
                                                            size_t j0, size_t dim, size_t pad,
                                                            attn_load_fn *load)
{
    for (size_t j = 0; j < ATTN_TILE; j++) {
        const char *row = (const char *)rows + (j0 + j) * stride;
        bool seen = j0 + j >= p->lo && j0 + j < p->hi;

        for (size_t d = 0; d < pad; d += 16)
            _mm512_store_ps(p->tile + j * pad + d, seen ? load(row, d, dim) : _mm512_setzero_ps());
    }
}

static inline __attribute__((always_inline)) void attn_scores(const struct attn_pass *p,
                                                              attn_load_fn *load)
{
    const struct attn *a = p->a;

    for (size_t j0 = p->lo & ~(size_t)(ATTN_TILE - 1); j0 < p->hi; j0 += ATTN_TILE) {
        size_t q = 0;

        attn_fill(p, a->k, a->k_stride, j0, a->head_dim, p->k_pad, load);
        for (; q + 4 <= p->n_q; q += 4)
            for (size_t k = 0; k < ATTN_TILE; k += 4)
                attn_scores_block(p, q, 4, j0, k, 4);
        for (; q < p->n_q; q++)
            attn_scores_block(p, q, 1, j0, 0, 16);
    }
}

static inline __mmask16 attn_mask(struct attn_span span, size_t j0)
{
    unsigned from = span.from > j0 ? span.from - (unsigned)j0 : 0;
    unsigned to = span.to > j0 ? span.to - (unsigned)j0 : 0;

    return (__mmask16)(tail16(to) & ~(from >= 16 ? 0xffffu : (1u << from) - 1));
}

/* Scores to weights, in place; keys that the query does not see keep weight 0. */
static inline void attn_weights(const struct attn_pass *p, size_t q)
{
    struct attn_span span = p->span[q];
    size_t first = span.from & ~(size_t)15;
    float *s = p->s + q * KERNELS_CHUNK;
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
    p->a->m[p->q0 + q] = most;
    p->a->l[p->q0 + q] = tree16(l);
}

/* Keys [j, to) of the tile at j0 into 16 n_v elements of n_q outputs. */
static inline __attribute__((always_inline)) void attn_values_block(const struct attn_pass *p,
                                                                    size_t q, size_t n_q, size_t j0,
                                                                    size_t j, size_t to, size_t d,
                                                                    size_t n_v)
{
    const struct attn *a = p->a;
    float *o = a->o + (p->q0 + q) * a->v_dim + d;
    const float *s = p->s + q * KERNELS_CHUNK;
    __m512 acc[4][8];

    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            acc[i][v] =
                _mm512_maskz_loadu_ps(tail16(a->v_dim - d - 16 * v), o + i * a->v_dim + 16 * v);
    for (; j < to; j++) {
        const float *row = p->tile + (j - j0) * p->v_pad + d;

        for (size_t i = 0; i < n_q; i++) {
            __m512 w = _mm512_set1_ps(s[i * KERNELS_CHUNK + j]);

            for (size_t v = 0; v < n_v; v++)
                acc[i][v] = _mm512_fmadd_ps(w, _mm512_load_ps(row + 16 * v), acc[i][v]);
        }
    }
    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            _mm512_mask_storeu_ps(o + i * a->v_dim + 16 * v, tail16(a->v_dim - d - 16 * v),
                                  acc[i][v]);
}

/* Whole blocks of elements first, then one vector at a time. */
static inline __attribute__((always_inline)) void attn_values_of(const struct attn_pass *p,
                                                                 size_t q, size_t n_q, size_t j0,
                                                                 size_t j, size_t to)
{
    size_t d = 0, v_dim = p->a->v_dim;

    for (; d + 64 <= v_dim; d += 64)
        attn_values_block(p, q, n_q, j0, j, to, d, 4);
    for (; d < v_dim; d += 16)
        attn_values_block(p, q, n_q, j0, j, to, d, 1);
}

static inline __attribute__((always_inline)) void attn_values(const struct attn_pass *p,
                                                              attn_load_fn *load)
{
    const struct attn *a = p->a;

    for (size_t j0 = p->lo & ~(size_t)(ATTN_TILE - 1); j0 < p->hi; j0 += ATTN_TILE) {
        size_t q = 0;

        attn_fill(p, a->v, a->v_stride, j0, a->v_dim, p->v_pad, load);
        while (q < p->n_q) {
            size_t j = MAX(p->span[q].from, j0), to = MIN(p->span[q].to, j0 + ATTN_TILE);
            size_t n = 1;

            /* Queries that see the same of this tile go together: a weight of 0 would not do for an infinite value. */
            while (n < 4 && q + n < p->n_q && MAX(p->span[q + n].from, j0) == j &&
                   MIN(p->span[q + n].to, j0 + ATTN_TILE) == to)
                n++;
            if (n == 4)
                attn_values_of(p, q, 4, j0, j, to);
            else if (n >= 2)
                attn_values_of(p, q, n = 2, j0, j, to);
            else
                attn_values_of(p, q, 1, j0, j, to);
            q += n;
        }
    }
}

/*
 * One, two or four queries that see the same keys, as in decoding: too few to
 * pay for a tile, so each vector is decoded on its way into the sums.
 */
static inline __attribute__((always_inline)) void attn_few_scores(const struct attn_pass *p,
                                                                  size_t q, size_t n_q,
                                                                  attn_load_fn *load)
{
    const struct attn *a = p->a;
    const float *query = a->q + (p->q0 + q) * a->q_stride;
    size_t n_k = 16 / n_q;

    for (size_t j0 = p->lo; j0 < p->hi; j0 += n_k) {
        __m512 acc[16], s;

        for (size_t i = 0; i < 16; i++)
            acc[i] = _mm512_setzero_ps();
        for (size_t d = 0; d < a->head_dim; d += 16) {
            __m512 qv[4];

            for (size_t i = 0; i < n_q; i++)
                qv[i] = _mm512_maskz_loadu_ps(tail16(a->head_dim - d), query + i * a->q_stride + d);
            for (size_t j = 0; j < n_k; j++) {
                /* Past the end the last key again: its score is not stored. */
                size_t key = MIN(j0 + j, p->hi - 1);
                __m512 kv = load((const char *)a->k + key * a->k_stride, d, a->head_dim);

                for (size_t i = 0; i < n_q; i++)
                    acc[i * n_k + j] = _mm512_fmadd_ps(qv[i], kv, acc[i * n_k + j]);
            }
        }
        s = attn_cap(a, tree16x16(acc));
        for (size_t i = 0; i < n_q; i++)
            _mm512_mask_storeu_ps(
                p->s + (q + i) * KERNELS_CHUNK + j0, tail16(MIN(n_k, p->hi - j0)),
                _mm512_maskz_compress_ps((__mmask16)(tail16(n_k) << (i * n_k)), s));
    }
}

static inline __attribute__((always_inline)) void attn_few_values(const struct attn_pass *p,
                                                                  size_t q, size_t n_q, size_t d,
                                                                  size_t n_v, attn_load_fn *load)
{
    const struct attn *a = p->a;
    float *o = a->o + (p->q0 + q) * a->v_dim + d;
    const float *s = p->s + q * KERNELS_CHUNK;
    __m512 acc[4][8];

    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            acc[i][v] = _mm512_setzero_ps();
    for (size_t j = p->lo; j < p->hi; j++)
        for (size_t v = 0; v < n_v; v++) {
            __m512 x = load((const char *)a->v + j * a->v_stride, d + 16 * v, a->v_dim);

            for (size_t i = 0; i < n_q; i++)
                acc[i][v] = _mm512_fmadd_ps(_mm512_set1_ps(s[i * KERNELS_CHUNK + j]), x, acc[i][v]);
        }
    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            _mm512_mask_storeu_ps(o + i * a->v_dim + 16 * v, tail16(a->v_dim - d - 16 * v),
                                  acc[i][v]);
}

static inline __attribute__((always_inline)) void attn_few(const struct attn_pass *p, size_t q,
                                                           size_t n_q, attn_load_fn *load)
{
    size_t d = 0, v_dim = p->a->v_dim;

    attn_few_scores(p, q, n_q, load);
    for (size_t i = 0; i < n_q; i++)
        attn_weights(p, q + i);
    for (; n_q < 4 && d + 128 <= v_dim; d += 128)
        attn_few_values(p, q, n_q, d, 8, load);
    for (; d + 64 <= v_dim; d += 64)
        attn_few_values(p, q, n_q, d, 4, load);
    for (; d < v_dim; d += 16)
        attn_few_values(p, q, n_q, d, 1, load);
}

static inline bool attn_is_few(const struct attn_pass *p)
{
    bool same = p->n_q <= 4 && p->lo < p->hi;

    for (size_t q = 0; q < p->n_q && same; q++)
        same = p->span[q].from == p->lo && p->span[q].to == p->hi;
    return same;
}

static inline __attribute__((always_inline)) void attn_one_pass(const struct attn_pass *p,
                                                                attn_load_fn *load)
{
    size_t q = 0;

    if (attn_is_few(p)) {
        if (p->n_q == 4)
            attn_few(p, 0, 4, load);
        else if (p->n_q >= 2)
            attn_few(p, 0, 2, load);
        if (p->n_q % 2)
            attn_few(p, p->n_q - 1, 1, load);
        return;
    }
    memset(p->a->o + p->q0 * p->a->v_dim, 0, p->n_q * p->a->v_dim * sizeof(float));
    attn_scores(p, load);
    for (; q < p->n_q; q++)
        attn_weights(p, q);
    attn_values(p, load);
}

static inline __attribute__((always_inline)) void attn_avx512(const struct attn *a,
                                                              attn_load_fn *load)
{
    _Alignas(64) float s[ATTN_PASS * KERNELS_CHUNK];
    _Alignas(64) float tile[ATTN_TILE * KERNELS_HEAD_MAX];
    struct attn_pass p = {
        .a = a,
        .k_pad = (a->head_dim + 15) & ~(size_t)15,
        .v_pad = (a->v_dim + 15) & ~(size_t)15,
        .s = s,
        .tile = tile,
    };

    for (; p.q0 < a->n_q; p.q0 += ATTN_PASS) {
        p.n_q = MIN(a->n_q - p.q0, (size_t)ATTN_PASS);
        p.lo = KERNELS_CHUNK;
        p.hi = 0;
        for (size_t q = 0; q < p.n_q; q++) {
            p.span[q] = a->spans ? a->spans[p.q0 + q]
                                 : (struct attn_span){(uint32_t)a->from, (uint32_t)a->to};
            p.lo = MIN(p.lo, p.span[q].from);
            p.hi = MAX(p.hi, p.span[q].to);
        }
        attn_one_pass(&p, load);
    }
}
