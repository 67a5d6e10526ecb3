/*
 * matvec_neon - matrix products by the baseline of ARMv8: 8-bit products
 * widen to 16 bits, two of them are added (at most 128 * 127 * 2 = 32512),
 * then pairs widen to 32.
 *
 * Rows one by one, blocks in order, each decoded once to signed bytes for up
 * to four columns; the f32 steps are kernels.h's, on single floats.
 */
#pragma once

#include <arm_neon.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "backends/formats/blocks.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

#define INLINE      static inline __attribute__((always_inline))
#define MATVEC_COLS 4

INLINE const uint8_t *matvec_row(const struct matvec *m, size_t r)
{
    return (const uint8_t *)m->w + r * m->row_bytes;
}

INLINE const void *matvec_act(const struct matvec *m, size_t c)
{
    return (const uint8_t *)m->act + c * m->act_stride;
}

/* Four dwords that add up to the sixteen products. */
INLINE int32x4_t dot16(int8x16_t w, int8x16_t a)
{
    int16x8_t p = vmull_s8(vget_low_s8(w), vget_low_s8(a));

    return vpaddlq_s16(vmlal_s8(p, vget_high_s8(w), vget_high_s8(a)));
}

INLINE int8x16_t low_nibbles(uint8x16_t x)
{
    return vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
}

INLINE int8x16_t high_nibbles(uint8x16_t x)
{
    return vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
}

/* 16 bits as 16 bytes of 0 or 16. */
INLINE int8x16_t fifth_bits(const uint8_t *qh)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t x = vcombine_u8(vdup_n_u8(qh[0]), vdup_n_u8(qh[1]));

    return vreinterpretq_s8_u8(vandq_u8(vtstq_u8(x, bit), vdupq_n_u8(16)));
}

INLINE float half_at(const uint8_t *p)
{
    uint16_t h;

    memcpy(&h, p, sizeof(h));
    return f16_to_f32(h);
}

/* -- 32 weights --------------------------------------------------------------------------- */

struct decoded32 {
    int8x16_t lo, hi;
    float d, m;
};

typedef void decode32_fn(const uint8_t *block, struct decoded32 *to);

INLINE void matvec32(const struct matvec *m, decode32_fn *decode, size_t block_bytes, bool offset)
{
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t b = 0; b < m->n / 32; b++, w += block_bytes) {
            struct decoded32 x;

            decode(w, &x);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_32 *a = (const struct act_q8_32 *)matvec_act(m, c) + b;
                int32x4_t p =
                    vaddq_s32(dot16(x.lo, vld1q_s8(a->q)), dot16(x.hi, vld1q_s8(a->q + 16)));
                float f = (float)vaddvq_s32(p);
                float v = offset ? __builtin_fmaf(x.d, f, x.m * (float)a->sum) : x.d * f;

                acc[c] = __builtin_fmaf(a->d, v, acc[c]);
            }
        }
        for (size_t c = 0; c < m->cols; c++)
            m->y[c * m->y_stride + r] = acc[c];
    }
}

/* -- 256 weights ---------------------------------------------------------------------------- */

struct decoded256 {
    int8_t q[256];
    int32_t scale[16];
    int16_t minima[16];
    float d, m;
};

typedef void decode256_fn(const uint8_t *block, struct decoded256 *to);

INLINE int32_t isum256(const struct decoded256 *x, const int8_t *a)
{
    int32x4_t sum = vdupq_n_s32(0);

    for (size_t j = 0; j < 16; j++)
        sum = vmlaq_n_s32(sum, dot16(vld1q_s8(x->q + 16 * j), vld1q_s8(a + 16 * j)), x->scale[j]);
    return vaddvq_s32(sum);
}

INLINE int32_t msum256(const struct decoded256 *x, const int16_t *sums)
{
    int32x4_t sum = vdupq_n_s32(0);

    for (size_t j = 0; j < 16; j += 4)
        sum = vmlal_s16(sum, vld1_s16(x->minima + j), vld1_s16(sums + j));
    return vaddvq_s32(sum);
}

INLINE void matvec256(const struct matvec *m, decode256_fn *decode, size_t block_bytes, bool minima)
{
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t b = 0; b < m->n / 256; b++, w += block_bytes) {
            struct decoded256 x;

            decode(w, &x);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_256 *a = (const struct act_q8_256 *)matvec_act(m, c) + b;
                float f = (float)isum256(&x, a->q);
                float v = x.d * f;

                if (minima)
                    v = __builtin_fmaf(x.d, f, -(x.m * (float)msum256(&x, a->sums)));
                acc[c] = __builtin_fmaf(a->d, v, acc[c]);
            }
        }
        for (size_t c = 0; c < m->cols; c++)
            m->y[c * m->y_stride + r] = acc[c];
    }
}

/* Any format of 256 weights by its own unpack. */
INLINE void decode_unpack(unpack_fn *unpack, const uint8_t *w, bool minima, struct decoded256 *to)
{
    struct unpacked u;

    unpack(w, &u);
    memcpy(to->q, u.q, 256);
    memcpy(to->scale, u.sc, sizeof(u.sc));
    for (size_t j = 0; minima && j < 16; j++)
        to->minima[j] = (int16_t)u.mins[j];
    to->d = u.d;
    to->m = minima ? u.m : 0.0f;
}

/* q4_k, q5_k: scales and minima of 32, each for two sixteens. */
INLINE void decode_scales_k(const uint8_t *w, struct decoded256 *to)
{
    for (int j = 0; j < 16; j++) {
        to->scale[j] = k_scale(w + 4, j / 2);
        to->minima[j] = (int16_t)k_min(w + 4, j / 2);
    }
    to->d = half_at(w);
    to->m = half_at(w + 2);
}

#define MATVEC_UNPACK(fmt, minima_)                                                                \
    INLINE void decode(const uint8_t *w, struct decoded256 *to)                                    \
    {                                                                                              \
        decode_unpack(unpack_##fmt, w, minima_, to);                                               \
    }                                                                                              \
    void matvec_##fmt##_neon(const struct matvec *m)                                               \
    {                                                                                              \
        matvec256(m, decode, sizeof(struct block_##fmt), minima_);                                 \
    }
