/*
 * The attention of one chunk, written to be read: the definition of the bits
 * of every attn kernel.  A format brings its way to decode a row; kernels.h
 * has the formula and the order of each sum.
 */
#pragma once

#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

typedef void attn_decode_fn(const void *row, float *out, size_t n);

static inline struct attn_span attn_span_of(const struct attn *a, size_t q)
{
    return a->spans ? a->spans[q] : (struct attn_span){(uint32_t)a->from, (uint32_t)a->to};
}

static inline float attn_score_scalar(const struct attn *a, const float *q, const float *k)
{
    float p[16] = {0};
    float s;

    for (size_t d = 0; d < a->head_dim; d++)
        p[d % 16] = fmaf(q[d], k[d], p[d % 16]);
    s = kernels_tree16(p) * a->scale;
    return a->soft_cap != 0.0f ? math_tanh(s / a->soft_cap) * a->soft_cap : s;
}

static inline void attn_one_scalar(const struct attn *a, size_t q, attn_decode_fn *decode)
{
    struct attn_span span = attn_span_of(a, q);
    float *o = a->o + q * a->v_dim;
    float row[KERNELS_HEAD_MAX], s[KERNELS_CHUNK], p[16] = {0};
    float m = -INFINITY;

    for (size_t j = span.from; j < span.to; j++) {
        decode((const char *)a->k + j * a->k_stride, row, a->head_dim);
        s[j] = attn_score_scalar(a, a->q + q * a->q_stride, row);
        m = s[j] > m ? s[j] : m;
    }
    m = m + 0.0f; /* a maximum of -0 has the bits of +0 */
    for (size_t j = span.from; j < span.to; j++) {
        s[j] = math_exp(s[j] - m);
        p[j % 16] += s[j];
    }
    a->m[q] = m;
    a->l[q] = kernels_tree16(p);

    for (size_t d = 0; d < a->v_dim; d++)
        o[d] = 0.0f;
    for (size_t j = span.from; j < span.to; j++) {
        decode((const char *)a->v + j * a->v_stride, row, a->v_dim);
        for (size_t d = 0; d < a->v_dim; d++)
            o[d] = fmaf(s[j], row[d], o[d]);
    }
}

static inline void attn_scalar(const struct attn *a, attn_decode_fn *decode)
{
    for (size_t q = 0; q < a->n_q; q++)
        attn_one_scalar(a, q, decode);
}
