/*
 * attn_avx2 - the attention of one chunk, for any format that can decode a row
 * into floats.
 *
 * Sixteen keys (then values) at a time are decoded into a tile in L1 and meet
 * up to ATTN_PASS queries there.  Two vectors are the sixteen partial sums of a
 * score; every sum has the order of scalar/attn_scalar.h.
 */
#pragma once

#include <math.h>
#include <string.h>

#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"
#include "common/alloc.h"

#define ATTN_PASS 16 /* queries: their scores stay in L1 */
#define ATTN_TILE 16 /* keys */

/* Decodes n elements into out, which has room for a multiple of 16; the rest becomes zero. */
typedef void attn_decode_fn(const void *row, float *out, size_t n);

struct attn_pass {
    const struct attn *a;
    size_t q0, n_q;
    struct attn_span span[ATTN_PASS];
    size_t lo, hi; /* keys that any query sees */
    size_t k_pad, v_pad;
    float *s;    /* [n_q][KERNELS_CHUNK] scores, then weights */
    float *tile; /* [ATTN_TILE][pad] */
};

/* Lanes 0 … 3 = kernels_tree16() of four sums whose upper halves are already added. */
static inline __m128 tree8x4(const __m256 v[4])
{
    __m128 x[4], p, q;

    for (int i = 0; i < 4; i++)
        x[i] = _mm_add_ps(_mm256_castps256_ps128(v[i]), _mm256_extractf128_ps(v[i], 1));
    p = _mm_add_ps(_mm_movelh_ps(x[0], x[1]), _mm_movehl_ps(x[1], x[0]));
    q = _mm_add_ps(_mm_movelh_ps(x[2], x[3]), _mm_movehl_ps(x[3], x[2]));
    return _mm_add_ps(_mm_shuffle_ps(p, q, 0x88), _mm_shuffle_ps(p, q, 0xdd));
}

/* The scores of query q against four keys of the tile. */
static inline void attn_scores_block(const struct attn_pass *p, size_t q, size_t j0, size_t k)
{
    const struct attn *a = p->a;
    const float *query = a->q + (p->q0 + q) * a->q_stride;
    const float *key = p->tile + k * p->k_pad;
    __m256 lo[4], hi[4];

    for (int j = 0; j < 4; j++)
        lo[j] = hi[j] = _mm256_setzero_ps();
    for (size_t d = 0; d < a->head_dim; d += 16) {
        __m256 ql = load8(query + d, a->head_dim - d);
        __m256 qh = load8(query + d + 8, left8(a->head_dim, d + 8));

        for (size_t j = 0; j < 4; j++) {
            const float *row = key + j * p->k_pad + d;

            lo[j] = _mm256_fmadd_ps(ql, _mm256_load_ps(row), lo[j]);
            hi[j] = _mm256_fmadd_ps(qh, _mm256_load_ps(row + 8), hi[j]);
        }
    }
    for (int j = 0; j < 4; j++)
        lo[j] = _mm256_add_ps(lo[j], hi[j]);
    _mm_store_ps(p->s + q * KERNELS_CHUNK + j0 + k, tree8x4(lo));
}

/* Rows [j0, j0 + 16) of keys or values into the tile; those that nobody sees may not be there. */
static inline __attribute__((always_inline)) void attn_fill(const struct attn_pass *p,
                                                            const void *rows, size_t stride,
                                                            size_t j0, size_t dim, size_t pad,
                                                            attn_decode_fn *decode)
{
    for (size_t j = 0; j < ATTN_TILE; j++)
        if (j0 + j >= p->lo && j0 + j < p->hi)
            decode((const char *)rows + (j0 + j) * stride, p->tile + j * pad, dim);
        else
            memset(p->tile + j * pad, 0, pad * sizeof(float));
}

static inline __attribute__((always_inline)) void attn_scores(const struct attn_pass *p,
                                                              attn_decode_fn *decode)
{
    const struct attn *a = p->a;

    for (size_t j0 = p->lo & ~(size_t)(ATTN_TILE - 1); j0 < p->hi; j0 += ATTN_TILE) {
        attn_fill(p, a->k, a->k_stride, j0, a->head_dim, p->k_pad, decode);
        for (size_t q = 0; q < p->n_q; q++)
            for (size_t k = 0; k < ATTN_TILE; k += 4)
                attn_scores_block(p, q, j0, k);
    }
}

/* All bits of the lanes of keys j … j + 7 that the query sees. */
static inline __m256 attn_mask(struct attn_span span, size_t j)
{
    size_t from = span.from > j ? span.from - j : 0, to = span.to > j ? span.to - j : 0;

    return _mm256_castsi256_ps(_mm256_andnot_si256(tail8(from), tail8(to)));
}

static inline __m256 attn_cap(const struct attn *a, __m256 s)
{
    s = _mm256_mul_ps(s, _mm256_set1_ps(a->scale));
    if (a->soft_cap != 0.0f)
        s = _mm256_mul_ps(tanh8(_mm256_div_ps(s, _mm256_set1_ps(a->soft_cap))),
                          _mm256_set1_ps(a->soft_cap));
    return s;
}

static inline __m256 attn_weights8(float *s, struct attn_span span, size_t j, __m256 m)
{
    __m256 e = exp8(_mm256_sub_ps(_mm256_load_ps(s + j), m));

    e = _mm256_and_ps(e, attn_mask(span, j));
    _mm256_store_ps(s + j, e);
    return e;
}

/* Sums to scores and to weights, in place; keys that the query does not see get weight 0. */
static inline void attn_weights(const struct attn_pass *p, size_t q)
{
    const __m256 least = _mm256_set1_ps(-INFINITY);
    struct attn_span span = p->span[q];
    size_t first = span.from & ~(size_t)15;
    float *s = p->s + q * KERNELS_CHUNK;
    __m256 m = least, lo = _mm256_setzero_ps(), hi = _mm256_setzero_ps();
    float most;

    for (size_t j = first; j < span.to; j += 8) {
        __m256 v = attn_cap(p->a, _mm256_load_ps(s + j));

        _mm256_store_ps(s + j, v);
        m = _mm256_max_ps(_mm256_blendv_ps(least, v, attn_mask(span, j)), m);
    }
    most = most8(m) + 0.0f;
    m = _mm256_set1_ps(most);
    for (size_t j = first; j < span.to; j += 16) {
        lo = _mm256_add_ps(lo, attn_weights8(s, span, j, m));
        hi = _mm256_add_ps(hi, attn_weights8(s, span, j + 8, m));
    }
    p->a->m[p->q0 + q] = most;
    p->a->l[p->q0 + q] = tree16(lo, hi);
}

/* Keys [j, to) of the tile at j0 into 8 n_v elements of n_q outputs. */
static inline __attribute__((always_inline)) void attn_values_block(const struct attn_pass *p,
                                                                    size_t q, size_t n_q, size_t j0,
                                                                    size_t j, size_t to, size_t d,
                                                                    size_t n_v)
{
    const struct attn *a = p->a;
    float *o = a->o + (p->q0 + q) * a->v_dim + d;
    const float *s = p->s + q * KERNELS_CHUNK;
    __m256 acc[2][8];

    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            acc[i][v] = load8(o + i * a->v_dim + 8 * v, a->v_dim - d - 8 * v);
    for (; j < to; j++) {
        const float *row = p->tile + (j - j0) * p->v_pad + d;

        for (size_t i = 0; i < n_q; i++) {
            __m256 w = _mm256_set1_ps(s[i * KERNELS_CHUNK + j]);

            for (size_t v = 0; v < n_v; v++)
                acc[i][v] = _mm256_fmadd_ps(w, _mm256_load_ps(row + 8 * v), acc[i][v]);
        }
    }
    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            store8(o + i * a->v_dim + 8 * v, a->v_dim - d - 8 * v, acc[i][v]);
}

/* Whole blocks of elements first, then one vector at a time. */
static inline __attribute__((always_inline)) void attn_values_of(const struct attn_pass *p,
                                                                 size_t q, size_t n_q, size_t j0,
                                                                 size_t j, size_t to)
{
    size_t d = 0, v_dim = p->a->v_dim, n_v = n_q == 1 ? 8 : 4;

    for (; d + 8 * n_v <= v_dim; d += 8 * n_v)
        attn_values_block(p, q, n_q, j0, j, to, d, n_v);
    for (; d < v_dim; d += 8)
        attn_values_block(p, q, n_q, j0, j, to, d, 1);
}

static inline __attribute__((always_inline)) void attn_values(const struct attn_pass *p,
                                                              attn_decode_fn *decode)
{
    const struct attn *a = p->a;

    for (size_t j0 = p->lo & ~(size_t)(ATTN_TILE - 1); j0 < p->hi; j0 += ATTN_TILE) {
        size_t q = 0;

        attn_fill(p, a->v, a->v_stride, j0, a->v_dim, p->v_pad, decode);
        while (q < p->n_q) {
            size_t j = MAX(p->span[q].from, j0), to = MIN(p->span[q].to, j0 + ATTN_TILE);

            /* Two go together when they see the same: a weight of 0 would spoil an infinite value. */
            if (q + 1 < p->n_q && MAX(p->span[q + 1].from, j0) == j &&
                MIN(p->span[q + 1].to, j0 + ATTN_TILE) == to) {
                attn_values_of(p, q, 2, j0, j, to);
                q += 2;
            } else {
                attn_values_of(p, q, 1, j0, j, to);
                q++;
            }
        }
    }
}

static inline __attribute__((always_inline)) void attn_avx2(const struct attn *a,
                                                            attn_decode_fn *decode)
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

    memset(a->o, 0, a->n_q * a->v_dim * sizeof(float));
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
        attn_scores(&p, decode);
        for (size_t q = 0; q < p.n_q; q++)
            attn_weights(&p, q);
        attn_values(&p, decode);
    }
}
