/*
 * attn_neon - the attention of one chunk, for any format that can decode a row
 * into floats.
 *
 * Sixteen keys (then values) at a time are decoded into a tile in L1 and meet
 * up to ATTN_PASS queries there.  Four vectors are the sixteen partial sums of
 * a score; every sum has the order of scalar/attn_scalar.h.
 */
#pragma once

#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"
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

static inline float attn_score(const struct attn *a, const float *query, const float *key)
{
    float32x4_t p[4];
    float s;

    for (int v = 0; v < 4; v++)
        p[v] = vdupq_n_f32(0.0f);
    for (size_t d = 0; d < a->head_dim; d += 16)
        for (size_t v = 0; v < 4; v++)
            p[v] = vfmaq_f32(p[v], load4(query + d + 4 * v, left_of(a->head_dim, d + 4 * v)),
                             vld1q_f32(key + d + 4 * v));
    s = tree16(p) * a->scale;
    return a->soft_cap != 0.0f ? math_tanh(s / a->soft_cap) * a->soft_cap : s;
}

/* Rows [j0, j0 + 16) of keys or values into the tile; those that nobody sees may not be there. */
static inline __attribute__((always_inline)) void attn_fill(const struct attn_pass *p,
                                                            const void *rows, size_t stride,
                                                            size_t j0, size_t dim, size_t pad,
                                                            attn_decode_fn *decode)
{
    for (size_t j = MAX(j0, p->lo); j < MIN(j0 + ATTN_TILE, p->hi); j++)
        decode((const char *)rows + j * stride, p->tile + (j - j0) * pad, dim);
}

static inline __attribute__((always_inline)) void attn_scores(const struct attn_pass *p,
                                                              attn_decode_fn *decode)
{
    const struct attn *a = p->a;

    for (size_t j0 = p->lo & ~(size_t)(ATTN_TILE - 1); j0 < p->hi; j0 += ATTN_TILE) {
        attn_fill(p, a->k, a->k_stride, j0, a->head_dim, p->k_pad, decode);
        for (size_t q = 0; q < p->n_q; q++)
            for (size_t j = j0; j < j0 + ATTN_TILE; j++)
                p->s[q * KERNELS_CHUNK + j] = j >= p->span[q].from && j < p->span[q].to
                                                  ? attn_score(a, a->q + (p->q0 + q) * a->q_stride,
                                                               p->tile + (j - j0) * p->k_pad)
                                                  : -INFINITY;
    }
}

/* Scores to weights, in place; keys that the query does not see get weight 0. */
static inline void attn_weights(const struct attn_pass *p, size_t q)
{
    struct attn_span span = p->span[q];
    size_t first = span.from & ~(size_t)15;
    float *s = p->s + q * KERNELS_CHUNK;
    float32x4_t m = vdupq_n_f32(-INFINITY), sum[4];
    float most;

    for (size_t j = first; j < span.to; j += 4)
        m = more4(vld1q_f32(s + j), m);
    most = vmaxvq_f32(m) + 0.0f;
    m = vdupq_n_f32(most);
    for (int v = 0; v < 4; v++)
        sum[v] = vdupq_n_f32(0.0f);
    for (size_t j = first; j < span.to; j += 4) {
        uint32x4_t seen = vbicq_u32(tail4(left_of(span.to, j)), tail4(left_of(span.from, j)));
        float32x4_t e = exp4(vsubq_f32(vld1q_f32(s + j), m));

        e = vbslq_f32(seen, e, vdupq_n_f32(0.0f));
        sum[j / 4 % 4] = vaddq_f32(sum[j / 4 % 4], e);
        vst1q_f32(s + j, e);
    }
    p->a->m[p->q0 + q] = most;
    p->a->l[p->q0 + q] = tree16(sum);
}

/* Keys [j, to) of the tile at j0 into 4 n_v elements of one output. */
static inline __attribute__((always_inline)) void attn_values_block(const struct attn_pass *p,
                                                                    size_t q, size_t j0, size_t j,
                                                                    size_t to, size_t d, size_t n_v)
{
    const struct attn *a = p->a;
    float *o = a->o + (p->q0 + q) * a->v_dim + d;
    const float *s = p->s + q * KERNELS_CHUNK;
    float32x4_t acc[8];

    for (size_t v = 0; v < n_v; v++)
        acc[v] = load4(o + 4 * v, a->v_dim - d - 4 * v);
    for (; j < to; j++) {
        const float *row = p->tile + (j - j0) * p->v_pad + d;

        for (size_t v = 0; v < n_v; v++)
            acc[v] = vfmaq_n_f32(acc[v], vld1q_f32(row + 4 * v), s[j]);
    }
    for (size_t v = 0; v < n_v; v++)
        store4(o + 4 * v, a->v_dim - d - 4 * v, acc[v]);
}

static inline __attribute__((always_inline)) void attn_values(const struct attn_pass *p,
                                                              attn_decode_fn *decode)
{
    const struct attn *a = p->a;

    for (size_t j0 = p->lo & ~(size_t)(ATTN_TILE - 1); j0 < p->hi; j0 += ATTN_TILE) {
        attn_fill(p, a->v, a->v_stride, j0, a->v_dim, p->v_pad, decode);
        for (size_t q = 0; q < p->n_q; q++) {
            size_t j = MAX(p->span[q].from, j0), to = MIN(p->span[q].to, j0 + ATTN_TILE), d = 0;

            for (; d + 32 <= a->v_dim; d += 32)
                attn_values_block(p, q, j0, j, to, d, 8);
            for (; d < a->v_dim; d += 4)
                attn_values_block(p, q, j0, j, to, d, 1);
        }
    }
}

static inline __attribute__((always_inline)) void attn_neon(const struct attn *a,
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
