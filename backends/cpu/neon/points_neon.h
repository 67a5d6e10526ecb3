/*
 * points_neon - the grid formats as blocks of signed bytes; see
 * backends/cpu/points.h and blocks256_neon.h.
 */
#pragma once

#include "backends/cpu/neon/blocks256_neon.h"
#include "backends/cpu/points.h"

/* Weights 16j … 16j + 15: -1 where the sign bit is set. */
INLINE int8x16_t minus_mask(const struct points256 *x, size_t j)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint16_t bits = (uint16_t)(x->minus[j / 4] >> j % 4 * 16);
    uint8x16_t spread = vcombine_u8(vdup_n_u8((uint8_t)bits), vdup_n_u8((uint8_t)(bits >> 8)));

    return vreinterpretq_s8_u8(vtstq_u8(spread, bit));
}

INLINE void magnitudes(const struct points256 *x, struct parts256 *p)
{
    for (size_t j = 0; j < 16; j++) {
        int8x16_t m = minus_mask(x, j);
        int8x16_t q = vreinterpretq_s8_u8(vld1q_u8(x->bytes + 16 * j));

        p->q[j] = vsubq_s8(veorq_s8(q, m), m);
    }
    p->scale = vld1q_s8(x->scale);
}

/* 8 * ternary + shift. */
INLINE void ternaries(const struct points256 *x, struct parts256 *p)
{
    for (size_t j = 0; j < 16; j++) {
        int8x16_t shift = vorrq_s8(minus_mask(x, j), vdupq_n_s8(1));
        int8x16_t q = vreinterpretq_s8_u8(vld1q_u8(x->bytes + 16 * j));

        p->q[j] = vaddq_s8(vshlq_n_s8(q, 3), shift);
    }
    p->scale = vld1q_s8(x->scale);
}

INLINE void scales_of_points(const uint8_t *const w[4], float part, float32x4_t *d, float32x4_t *m)
{
    *d = vmulq_n_f32(lanes_half4(w, 0), part);
    *m = vdupq_n_f32(0.0f);
}

/* d is spread over the block. */
INLINE void scales_of_points_iq1_m(const uint8_t *const w[4], float part, float32x4_t *d,
                                   float32x4_t *m)
{
    float x[4];

    for (size_t i = 0; i < 4; i++)
        x[i] = f16_to_f32(points_half_iq1_m(w[i])) * part;
    *d = vld1q_f32(x);
    *m = vdupq_n_f32(0.0f);
}

#define POINTS256(fmt, values, scales_from, part)                                                  \
    INLINE void block_##fmt(const uint8_t *w, struct parts256 *p)                                  \
    {                                                                                              \
        struct points256 x;                                                                        \
                                                                                                   \
        points_##fmt(w, &x);                                                                       \
        values(&x, p);                                                                             \
    }                                                                                              \
    INLINE void scales_of_##fmt(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m)         \
    {                                                                                              \
        scales_from(w, part, d, m);                                                                \
    }                                                                                              \
    static const struct blocks256 blocks256_##fmt = {                                              \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .subs = 16,                                                                                \
        .block = block_##fmt,                                                                      \
        .scales = scales_of_##fmt,                                                                 \
    }

POINTS256(iq1_s, ternaries, scales_of_points, 0.125f);
POINTS256(iq1_m, ternaries, scales_of_points_iq1_m, 0.125f);
POINTS256(iq2_xxs, magnitudes, scales_of_points, 0.125f);
POINTS256(iq2_xs, magnitudes, scales_of_points, 0.125f);
POINTS256(iq2_s, magnitudes, scales_of_points, 0.125f);
POINTS256(iq3_xxs, magnitudes, scales_of_points, 0.25f);
POINTS256(iq3_s, magnitudes, scales_of_points, 1.0f);
