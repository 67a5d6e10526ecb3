/*
 * attn_avx2 - the inner loops of attention over one chunk, for any format that
 * can decode eight elements of a row; attn_tiles.h has the outer ones.
 *
 * Two vectors are the sixteen partial sums of a score; every sum has the order
 * of scalar/attn_scalar.h.
 */
#pragma once

#include <math.h>

#include "backends/cpu/attn_panel.h"
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/avx2/vec_avx2.h"
#include "backends/cpu/kernels.h"

#define ATTN_KEYS   4
#define ATTN_PANEL  16 /* keys: two vectors */
#define ATTN_PASS   6  /* queries that meet them: twelve sums */
#define ATTN_GROUP  4  /* queries that share a value, at most */
#define ATTN_INLINE static inline __attribute__((always_inline))

/* Elements d … d + 7 of a row, n of them and zeros; formats in blocks have whole vectors only. */
typedef __m256 attn_load_fn(const void *row, size_t d, size_t n);

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

static inline __m256 attn_cap(const struct attn *a, __m256 s)
{
    s = _mm256_mul_ps(s, _mm256_set1_ps(a->scale));
    if (a->soft_cap != 0.0f)
        s = _mm256_mul_ps(tanh8(_mm256_div_ps(s, _mm256_set1_ps(a->soft_cap))),
                          _mm256_set1_ps(a->soft_cap));
    return s;
}

/*
 * The elements d … d + 15, n of them, of n_q queries against 4 / n_q keys, into
 * the sums of 4 scores.  n_q is a constant of the caller and all loops unroll.
 */
ATTN_INLINE void attn_step(const struct attn *a, const float *query, size_t n_q, const char *key,
                           size_t stride, size_t d, size_t n, __m256 lo[4], __m256 hi[4],
                           attn_load_fn *load)
{
    size_t n_k = 4 / n_q;

    for (size_t k = 0; k < n_k; k++) {
        __m256 kl = load(key + k * stride, d, n);
        __m256 kh = load(key + k * stride, d + 8, left8(n, 8));

        for (size_t i = 0; i < n_q; i++) {
            const float *q = query + i * a->q_stride + d;

            lo[i * n_k + k] = _mm256_fmadd_ps(load8(q, n), kl, lo[i * n_k + k]);
            hi[i * n_k + k] = _mm256_fmadd_ps(load8(q + 8, left8(n, 8)), kh, hi[i * n_k + k]);
        }
    }
}

/* The scores of n_q queries and 4 / n_q keys, before scale, stored at s. */
ATTN_INLINE void attn_block(const struct attn *a, const float *query, size_t n_q, const char *key,
                            size_t stride, float *s, attn_load_fn *load)
{
    __m256 lo[4], hi[4];
    __m128 v;
    size_t d = 0;

    for (size_t i = 0; i < 4; i++)
        lo[i] = hi[i] = _mm256_setzero_ps();
    for (; d + 16 <= a->head_dim; d += 16)
        attn_step(a, query, n_q, key, stride, d, 16, lo, hi, load);
    if (d < a->head_dim)
        attn_step(a, query, n_q, key, stride, d, a->head_dim - d, lo, hi, load);
    for (size_t i = 0; i < 4; i++)
        lo[i] = _mm256_add_ps(lo[i], hi[i]);
    v = tree8x4(lo);
    if (n_q == 1) {
        _mm_storeu_ps(s, v);
    } else if (n_q == 2) {
        _mm_storel_pi((__m64 *)s, v);
        _mm_storeh_pi((__m64 *)(s + KERNELS_CHUNK), v);
    } else {
        _mm_store_ss(s, v);
        _mm_store_ss(s + KERNELS_CHUNK, _mm_movehdup_ps(v));
        _mm_store_ss(s + 2 * KERNELS_CHUNK, _mm_movehl_ps(v, v));
        _mm_store_ss(s + 3 * KERNELS_CHUNK, _mm_shuffle_ps(v, v, 0xff));
    }
}

/* All bits of the lanes of keys j … j + 7 that the query sees. */
static inline __m256 attn_mask(struct attn_span span, size_t j)
{
    size_t from = span.from > j ? span.from - j : 0, to = span.to > j ? span.to - j : 0;

    return _mm256_castsi256_ps(_mm256_andnot_si256(tail8(from), tail8(to)));
}

static inline __m256 attn_weights8(float *s, struct attn_span span, size_t j, __m256 m)
{
    __m256 e = exp8(_mm256_sub_ps(_mm256_load_ps(s + j), m));

    e = _mm256_and_ps(e, attn_mask(span, j));
    _mm256_store_ps(s + j, e);
    return e;
}

/* Sums to scores and to weights, in place; keys that the query does not see get weight 0. */
static inline void attn_weights(const struct attn *a, size_t q, struct attn_span span, float *s)
{
    const __m256 least = _mm256_set1_ps(-INFINITY);
    size_t first = span.from & ~(size_t)15;
    __m256 m = least, lo = _mm256_setzero_ps(), hi = _mm256_setzero_ps();
    float most;

    for (size_t j = first; j < span.to; j += 8) {
        __m256 v = attn_cap(a, _mm256_load_ps(s + j));

        _mm256_store_ps(s + j, v);
        m = _mm256_max_ps(_mm256_blendv_ps(least, v, attn_mask(span, j)), m);
    }
    most = most8(m) + 0.0f;
    m = _mm256_set1_ps(most);
    for (size_t j = first; j < span.to; j += 16) {
        lo = _mm256_add_ps(lo, attn_weights8(s, span, j, m));
        hi = _mm256_add_ps(hi, attn_weights8(s, span, j + 8, m));
    }
    a->m[q] = most;
    a->l[q] = tree16(lo, hi);
}

/*
 * Adds n weighted rows to 8 n_v elements, or to the first `left` of 8, of n_q
 * outputs.  n_q and n_v are constants of the caller and all loops but that of
 * rows unroll.
 */
ATTN_INLINE void attn_add(const struct attn *a, float *o, size_t n_q, const float *weight,
                          const char *row, size_t stride, size_t n, size_t d, size_t n_v,
                          size_t left, attn_load_fn *load)
{
    const char *end = row + n * stride;
    __m256 acc[8][8];

    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            acc[i][v] = load8(o + i * a->v_dim + d + 8 * v, left);
    for (; row != end; row += stride, weight++)
        for (size_t v = 0; v < n_v; v++) {
            __m256 x = load(row, d + 8 * v, left);

            for (size_t i = 0; i < n_q; i++)
                acc[i][v] =
                    _mm256_fmadd_ps(_mm256_set1_ps(weight[i * KERNELS_CHUNK]), x, acc[i][v]);
        }
    for (size_t i = 0; i < n_q; i++)
        for (size_t v = 0; v < n_v; v++)
            store8(o + i * a->v_dim + d + 8 * v, left, acc[i][v]);
}

/* The same for the elements [d, end) of outputs: as many at once as registers hold. */
ATTN_INLINE void attn_add_rows(const struct attn *a, float *o, size_t n_q, size_t d, size_t end,
                               const float *weight, const char *row, size_t stride, size_t n,
                               attn_load_fn *load)
{
    for (; n_q == 1 && d + 64 <= end; d += 64)
        attn_add(a, o, n_q, weight, row, stride, n, d, 8, 8, load);
    for (; n_q <= 2 && d + 32 <= end; d += 32)
        attn_add(a, o, n_q, weight, row, stride, n, d, 4, 8, load);
    for (; d + 16 <= end; d += 16)
        attn_add(a, o, n_q, weight, row, stride, n, d, 2, 8, load);
    for (; d < end; d += 8)
        attn_add(a, o, n_q, weight, row, stride, n, d, 1, end - d, load);
}

/* Elements [d, end) of a row as floats, padded with zeros to a multiple of sixteen. */
ATTN_INLINE void attn_decode(const char *row, size_t d, size_t end, float *to, attn_load_fn *load)
{
    for (; d + 32 <= end; d += 32, to += 32)
#pragma GCC unroll 4
        for (size_t i = 0; i < 32; i += 8)
            _mm256_store_ps(to + i, load(row, d + i, 8));
    for (; d < end; d += 16, to += 16) {
        _mm256_store_ps(to, load(row, d, end - d));
        _mm256_store_ps(to + 8, load(row, d + 8, left8(end - d, 8)));
    }
}

/* Eight elements of such a row. */
static inline __attribute__((always_inline)) __m256 attn_load_tile(const void *row, size_t d,
                                                                   size_t n)
{
    (void)n;
    return _mm256_load_ps((const float *)row + d);
}

/* -- panels: a lane is a key --------------------------------------------------------------------- */

/* v[i] lane j = what was v[j] lane i. */
static inline __attribute__((always_inline)) void attn_transpose(__m256 v[8])
{
    __m256 t[8];

    for (int i = 0; i < 8; i += 4) {
        __m256 a = _mm256_unpacklo_ps(v[i], v[i + 1]), b = _mm256_unpackhi_ps(v[i], v[i + 1]);
        __m256 c = _mm256_unpacklo_ps(v[i + 2], v[i + 3]);
        __m256 d = _mm256_unpackhi_ps(v[i + 2], v[i + 3]);

        t[i] = _mm256_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm256_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm256_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm256_shuffle_ps(b, d, 0xee);
    }
    for (int i = 0; i < 4; i++) {
        v[i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x20);
        v[4 + i] = _mm256_permute2f128_ps(t[i], t[4 + i], 0x31);
    }
}

/* Keys j … j + 15 into a panel, those outside `any` as zeros. */
ATTN_INLINE void attn_fill_panel(const struct attn *a, size_t j, struct attn_span any, float *panel,
                                 attn_load_fn *load)
{
    size_t steps = attn_steps(a->head_dim);

    for (size_t d = 0; d < a->head_dim; d += 8)
        for (size_t half = 0; half < 16; half += 8) {
            const char *row = (const char *)a->k + (j + half) * a->k_stride;
            __m256 v[8];

#pragma GCC unroll 8
            for (size_t i = 0; i < 8; i++)
                v[i] = j + half + i >= any.from && j + half + i < any.to
                           ? load(row + i * a->k_stride, d, a->head_dim - d)
                           : _mm256_setzero_ps();
            attn_transpose(v);
#pragma GCC unroll 8
            for (size_t i = 0; i < 8; i++)
                _mm256_store_ps(
                    panel + (attn_turn[d % 16 + i] * steps + d / 16) * ATTN_PANEL + half, v[i]);
        }
}

/* Scores wait unscaled for their weights. */
ATTN_INLINE vec attn_score(const struct attn *a, vec v)
{
    (void)a;
    return v;
}

#include "backends/cpu/attn_tiles.h"
