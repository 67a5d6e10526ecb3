/*
 * points_neon - the grid formats decoded to signed bytes; see
 * backends/cpu/points.h.
 */
#pragma once

#include "backends/cpu/neon/matvec_neon.h"
#include "backends/cpu/points.h"

/* Weights 16j … 16j + 15: -1 where the sign bit is set. */
INLINE int8x16_t minus_mask(const struct points256 *x, size_t j)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint16_t bits = (uint16_t)(x->minus[j / 4] >> j % 4 * 16);
    uint8x16_t spread = vcombine_u8(vdup_n_u8((uint8_t)bits), vdup_n_u8((uint8_t)(bits >> 8)));

    return vreinterpretq_s8_u8(vtstq_u8(spread, bit));
}

INLINE void decode_magnitudes(const struct points256 *x, float d, struct decoded256 *to)
{
    for (size_t j = 0; j < 16; j++) {
        int8x16_t m = minus_mask(x, j);
        int8x16_t q = vreinterpretq_s8_u8(vld1q_u8(x->bytes + 16 * j));

        vst1q_s8(to->q + 16 * j, vsubq_s8(veorq_s8(q, m), m));
        to->scale[j] = x->scale[j];
    }
    to->d = d;
}

/* 8 * ternary + shift. */
INLINE void decode_ternary(const struct points256 *x, float d, struct decoded256 *to)
{
    for (size_t j = 0; j < 16; j++) {
        int8x16_t shift = vorrq_s8(minus_mask(x, j), vdupq_n_s8(1));
        int8x16_t q = vreinterpretq_s8_u8(vld1q_u8(x->bytes + 16 * j));

        vst1q_s8(to->q + 16 * j, vaddq_s8(vshlq_n_s8(q, 3), shift));
        to->scale[j] = x->scale[j];
    }
    to->d = d;
}

#define MATVEC_POINTS(fmt, decode_of, d_of)                                                        \
    INLINE void decode(const uint8_t *w, struct decoded256 *to)                                    \
    {                                                                                              \
        struct points256 x;                                                                        \
                                                                                                   \
        points_##fmt(w, &x);                                                                       \
        decode_of(&x, d_of, to);                                                                   \
    }                                                                                              \
    void matvec_##fmt##_neon(const struct matvec *m)                                               \
    {                                                                                              \
        matvec256(m, decode, sizeof(struct block_##fmt), false);                                   \
    }
