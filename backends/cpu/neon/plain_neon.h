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

INLINE void plain_matvec(const struct matvec *m, const struct plain *f)
{
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = (const uint8_t *)m->w + r * m->row_bytes;

        for (size_t c = 0; c < m->cols; c++) {
            const float *x = (const float *)((const char *)m->act + c * m->act_stride);
            float32x4_t acc[4];
            size_t k = 0;

            for (size_t i = 0; i < 4; i++)
                acc[i] = vdupq_n_f32(0.0f);
            for (; k + 16 <= m->n; k += 16)
                for (size_t i = 0; i < 4; i++)
                    acc[i] = vfmaq_f32(acc[i], f->load(w + (k + 4 * i) * f->bytes),
                                       vld1q_f32(x + k + 4 * i));
            m->y[c * m->y_stride + r] =
                k == m->n ? plain_tree(acc) : plain_rest(f, w + k * f->bytes, x + k, m->n - k, acc);
        }
    }
}
