/*
 * attn_avx512 - the inner loops of attention over one chunk, for any format
 * that can decode sixteen elements of a row; attn_tiles.h has the outer ones.
 *
 * A lane is a partial sum of a score, then a key, then an element of the
 * output, so that every sum has the order of scalar/attn_scalar.h.
 */
#pragma once

#include <math.h>

#include "backends/cpu/attn_panel.h"
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/avx512/vec_avx512.h"
#include "backends/cpu/kernels.h"

#define ATTN_KEYS   16
#define ATTN_PANEL  32 /* keys: two vectors */
#define ATTN_PASS   8  /* queries that meet them: sixteen sums */
#define ATTN_GROUP  8  /* queries that share a value, at most */
#define ATTN_ALL    ((__mmask16)0xffff)
#define ATTN_INLINE static inline __attribute__((always_inline))

/* Elements d … d + 15 of a row, those of the mask and zeros; blocks have whole vectors only. */
typedef __m512 attn_load_fn(const void *row, size_t d, __mmask16 mask);

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
    /* By blocks of 32, so that a format knows which half of one it decodes. */
    for (; d + 32 <= a->head_dim; d += 32) {
        attn_step(a, query, n_q, key, stride, d, ATTN_ALL, acc, load);
        attn_step(a, query, n_q, key, stride, d + 16, ATTN_ALL, acc, load);
    }
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
static inline void attn_weights(const struct attn *a, size_t q, struct attn_span span, float *s)
{
    size_t first = span.from & ~(size_t)15;
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
    a->m[q] = most;
    a->l[q] = tree16(l);
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
    __m512 acc[8][8];

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

/* The same for the elements [d, end) of outputs: as many at once as registers hold. */
ATTN_INLINE void attn_add_rows(const struct attn *a, float *o, size_t n_q, size_t d, size_t end,
                               const float *weight, const char *row, size_t stride, size_t n,
                               attn_load_fn *load)
{
    for (; n_q < 4 && d + 128 <= end; d += 128)
        attn_add(a, o, n_q, weight, row, stride, n, d, 8, ATTN_ALL, load);
    for (; n_q < 8 && d + 64 <= end; d += 64)
        attn_add(a, o, n_q, weight, row, stride, n, d, 4, ATTN_ALL, load);
    for (; n_q == 8 && d + 32 <= end; d += 32)
        attn_add(a, o, n_q, weight, row, stride, n, d, 2, ATTN_ALL, load);
    for (; d < end; d += 16)
        attn_add(a, o, n_q, weight, row, stride, n, d, 1, tail16(end - d), load);
}

/* Elements [d, end) of a row as floats, padded with zeros to whole vectors. */
ATTN_INLINE void attn_decode(const char *row, size_t d, size_t end, float *to, attn_load_fn *load)
{
    for (; d + 32 <= end; d += 32, to += 32) {
        _mm512_store_ps(to, load(row, d, ATTN_ALL));
        _mm512_store_ps(to + 16, load(row, d + 16, ATTN_ALL));
    }
    for (; d < end; d += 16, to += 16)
        _mm512_store_ps(to, load(row, d, tail16(end - d)));
}

/* Sixteen elements of such a row. */
static inline __attribute__((always_inline)) __m512 attn_load_tile(const void *row, size_t d,
                                                                   __mmask16 mask)
{
    (void)mask;
    return _mm512_load_ps((const float *)row + d);
}

/* -- panels: a lane is a key --------------------------------------------------------------------- */

/* v[i] lane j = what was v[j] lane i. */
static inline __attribute__((always_inline)) void attn_transpose(__m512 v[16])
{
    __m512 t[16];

    for (int i = 0; i < 16; i += 4) {
        __m512 a = _mm512_unpacklo_ps(v[i], v[i + 1]), b = _mm512_unpackhi_ps(v[i], v[i + 1]);
        __m512 c = _mm512_unpacklo_ps(v[i + 2], v[i + 3]);
        __m512 d = _mm512_unpackhi_ps(v[i + 2], v[i + 3]);

        t[i] = _mm512_shuffle_ps(a, c, 0x44);
        t[i + 1] = _mm512_shuffle_ps(a, c, 0xee);
        t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
        t[i + 3] = _mm512_shuffle_ps(b, d, 0xee);
    }
    for (int i = 0; i < 4; i++) {
        __m512 a = _mm512_shuffle_f32x4(t[i], t[4 + i], 0x88);
        __m512 b = _mm512_shuffle_f32x4(t[i], t[4 + i], 0xdd);
        __m512 c = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], 0x88);
        __m512 d = _mm512_shuffle_f32x4(t[8 + i], t[12 + i], 0xdd);

        v[i] = _mm512_shuffle_f32x4(a, c, 0x88);
        v[8 + i] = _mm512_shuffle_f32x4(a, c, 0xdd);
        v[4 + i] = _mm512_shuffle_f32x4(b, d, 0x88);
        v[12 + i] = _mm512_shuffle_f32x4(b, d, 0xdd);
    }
}

/* Keys j … j + 31 into a panel, those outside `any` as zeros; `whole`: there are none, a constant. */
ATTN_INLINE void attn_fill_keys(const struct attn *a, size_t j, struct attn_span any, bool whole,
                                float *panel, attn_load_fn *load)
{
    size_t steps = attn_steps(a->head_dim);

    for (size_t half = 0; half < 2; half++, j += 16)
        for (size_t d = 0; d < a->head_dim; d += 16) {
            __mmask16 m = tail16(a->head_dim - d);
            const char *row = (const char *)a->k + j * a->k_stride;
            float *to = panel + d / 16 * ATTN_PANEL + 16 * half;
            __m512 v[16];

#pragma GCC unroll 16
            for (size_t i = 0; i < 16; i++)
                v[i] = whole || (j + i >= any.from && j + i < any.to)
                           ? load(row + i * a->k_stride, d, m)
                           : _mm512_setzero_ps();
            attn_transpose(v);
#pragma GCC unroll 16
            for (size_t i = 0; i < 16; i++)
                _mm512_store_ps(to + attn_turn[i] * steps * ATTN_PANEL, v[i]);
        }
}

ATTN_INLINE void attn_fill_panel(const struct attn *a, size_t j, struct attn_span any, float *panel,
                                 attn_load_fn *load)
{
    if (j >= any.from && j + ATTN_PANEL <= any.to)
        attn_fill_keys(a, j, any, true, panel, load);
    else
        attn_fill_keys(a, j, any, false, panel, load);
}

ATTN_INLINE vec attn_score(const struct attn *a, vec v)
{
    return attn_cap(a, v);
}

#include "backends/cpu/attn_tiles.h"
