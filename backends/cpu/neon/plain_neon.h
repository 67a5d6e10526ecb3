/*
 * plain_neon - f32, f16 and bf16 weights: four vectors of four lanes are the
 * sixteen partial sums of kernels.h, then the tree.
 */
#pragma once

#include <arm_neon.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "backends/formats/half.h"

#define INLINE static inline __attribute__((always_inline))

struct plain {
    size_t bytes; /* of one weight */
    float32x4_t (*load)(const uint8_t *p);
};

INLINE float32x4_t load_f32(const uint8_t *p)
{
    return vreinterpretq_f32_u8(vld1q_u8(p));
}

INLINE float32x4_t load_f16(const uint8_t *p)
{
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(p)));
}

INLINE float32x4_t load_bf16(const uint8_t *p)
{
    return vreinterpretq_f32_u32(vshll_n_u16(vreinterpret_u16_u8(vld1_u8(p)), 16));
}

static const struct plain plain_f32 = {4, load_f32};
static const struct plain plain_f16 = {2, load_f16};
static const struct plain plain_bf16 = {2, load_bf16};

/* The tree of kernels_tree16(). */
INLINE float plain_tree(const float32x4_t p[4])
{
    float32x4_t a = vaddq_f32(vaddq_f32(p[0], p[2]), vaddq_f32(p[1], p[3]));
    float32x2_t b = vadd_f32(vget_low_f32(a), vget_high_f32(a));

    return vget_lane_f32(b, 0) + vget_lane_f32(b, 1);
}

/* The last weights, fewer than 16: copied, so that nothing behind them is read. */
INLINE float plain_rest(const struct plain *f, const uint8_t *w, const float *x, size_t left,
                        const float32x4_t acc[4])
{
    uint8_t rest[16 * 4] = {0};
    float p[16], v[16];

    memcpy(rest, w, left * f->bytes);
    for (size_t i = 0; i < 4; i++) {
        vst1q_f32(p + 4 * i, acc[i]);
        vst1q_f32(v + 4 * i, f->load(rest + 4 * i * f->bytes));
    }
    for (size_t i = 0; i < left; i++)
        p[i] = __builtin_fmaf(v[i], x[i], p[i]);
    return kernels_tree16(p);
}

/* Products of rows x cols over n weights; y[c * y_stride + r].  Both are constants of the caller. */
INLINE void plain_block(const struct plain *f, const uint8_t *w, size_t row_bytes, size_t rows,
                        const char *act, size_t act_stride, size_t cols, size_t n, float *y,
                        size_t y_stride)
{
    float32x4_t acc[6][4];
    size_t k = 0;

    for (size_t i = 0; i < rows * cols; i++)
        for (size_t v = 0; v < 4; v++)
            acc[i][v] = vdupq_n_f32(0.0f);
    for (; k + 16 <= n; k += 16)
#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++) {
            float32x4_t x[3];

            for (size_t c = 0; c < cols; c++)
                x[c] = vld1q_f32((const float *)(act + c * act_stride) + k + 4 * v);
            for (size_t r = 0; r < rows; r++) {
                float32x4_t weights = f->load(w + r * row_bytes + (k + 4 * v) * f->bytes);

                for (size_t c = 0; c < cols; c++)
                    acc[r * cols + c][v] = vfmaq_f32(acc[r * cols + c][v], weights, x[c]);
            }
        }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            const float32x4_t *a = acc[r * cols + c];

            y[c * y_stride + r] =
                k == n ? plain_tree(a)
                       : plain_rest(f, w + r * row_bytes + k * f->bytes,
                                    (const float *)(act + c * act_stride) + k, n - k, a);
        }
}

/* Two rows, or the last one, of columns c … end, three at a time. */
INLINE void plain_strip(const struct gemm *g, const struct plain *f, size_t r, size_t rows,
                        size_t c, size_t end)
{
    const uint8_t *w = (const uint8_t *)g->w + r * g->row_bytes;

    for (; c < end; c += 3) {
        const char *act = (const char *)g->act + c * g->act_stride;
        float *y = g->y + c * g->y_stride + r;

        if (end - c >= 3)
            plain_block(f, w, g->row_bytes, rows, act, g->act_stride, 3, g->n, y, g->y_stride);
        else
            for (size_t i = 0; i < end - c; i++)
                plain_block(f, w, g->row_bytes, rows, act + i * g->act_stride, g->act_stride, 1,
                            g->n, y + i * g->y_stride, g->y_stride);
    }
}

INLINE void plain_columns(const struct gemm *g, const struct plain *f, size_t c, size_t end)
{
    size_t r = 0;

    for (; r + 2 <= g->rows; r += 2)
        plain_strip(g, f, r, 2, c, end);
    if (r < g->rows)
        plain_strip(g, f, r, 1, c, end);
}

/* A matvec is a gemm of few columns. */
INLINE void plain_matvec(const struct matvec *m, const struct plain *f)
{
    const struct gemm g = {
        .w = m->w,
        .row_bytes = m->row_bytes,
        .rows = m->rows,
        .n = m->n,
        .act = m->act,
        .act_stride = m->act_stride,
        .y = m->y,
        .y_stride = m->y_stride,
    };

    plain_columns(&g, f, 0, m->cols);
}

/* As many columns as fit in half an L2 while all rows pass; two rows at a time stay in L1. */
INLINE void plain_gemm(const struct gemm *g, const struct plain *f)
{
    size_t fit = ((size_t)256 << 10) / (g->n * sizeof(float)) / 3 * 3;
    size_t step = fit < 3 ? 3 : fit;

    for (size_t c = 0; c < g->cols; c += step)
        plain_columns(g, f, c, c + step < g->cols ? c + step : g->cols);
}
