/*
 * blocks32_neon - formats of 32 weights: a block as 32 signed bytes in natural
 * order, the scales of four blocks at a time.
 */
#pragma once

#include "backends/cpu/neon/lanes_neon.h"
#include "backends/formats/blocks.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"

struct blocks32 {
    size_t bytes;
    bool offset; /* has an m: w = d * q + m */
    void (*block)(const uint8_t *w, int8x16_t q[2]);
    /* d (and m) of four blocks, wherever they lie. */
    void (*scales)(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m);
};

INLINE void nibbles(const uint8_t *qs, int8x16_t q[2])
{
    uint8x16_t x = vld1q_u8(qs);

    q[0] = lanes_low(x);
    q[1] = lanes_high(x);
}

INLINE void nibbles_of(const uint8_t *qs, const int8_t table[16], int8x16_t q[2])
{
    int8x16_t values = vld1q_s8(table);

    nibbles(qs, q);
    q[0] = vqtbl1q_s8(values, vreinterpretq_u8_s8(q[0]));
    q[1] = vqtbl1q_s8(values, vreinterpretq_u8_s8(q[1]));
}

/* 16 bits as 16 bytes of 0 or 16. */
INLINE int8x16_t fifth_bits(const uint8_t *qh)
{
    const uint8x16_t bit = vreinterpretq_u8_u64(vdupq_n_u64(0x8040201008040201));
    uint8x16_t x = vcombine_u8(vdup_n_u8(qh[0]), vdup_n_u8(qh[1]));

    return vreinterpretq_s8_u8(vandq_u8(vtstq_u8(x, bit), vdupq_n_u8(16)));
}

INLINE void less(int8x16_t q[2], int8_t zero)
{
    q[0] = vsubq_s8(q[0], vdupq_n_s8(zero));
    q[1] = vsubq_s8(q[1], vdupq_n_s8(zero));
}

INLINE void block_q4_0(const uint8_t *w, int8x16_t q[2])
{
    nibbles(w + 2, q);
    less(q, 8);
}

INLINE void block_q4_1(const uint8_t *w, int8x16_t q[2])
{
    nibbles(w + 4, q);
}

INLINE void fives(const uint8_t *qh, int8x16_t q[2])
{
    nibbles(qh + 4, q);
    q[0] = vorrq_s8(q[0], fifth_bits(qh));
    q[1] = vorrq_s8(q[1], fifth_bits(qh + 2));
}

INLINE void block_q5_0(const uint8_t *w, int8x16_t q[2])
{
    fives(w + 2, q);
    less(q, 16);
}

INLINE void block_q5_1(const uint8_t *w, int8x16_t q[2])
{
    fives(w + 4, q);
}

INLINE void block_q8_0(const uint8_t *w, int8x16_t q[2])
{
    q[0] = vreinterpretq_s8_u8(vld1q_u8(w + 2));
    q[1] = vreinterpretq_s8_u8(vld1q_u8(w + 18));
}

INLINE void block_iq4_nl(const uint8_t *w, int8x16_t q[2])
{
    nibbles_of(w + 2, iq4_values, q);
}

INLINE void block_mxfp4(const uint8_t *w, int8x16_t q[2])
{
    nibbles_of(w + 1, fp4_doubled, q);
}

INLINE void scales_of_half(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m)
{
    *d = lanes_half4(w, 0);
    *m = vdupq_n_f32(0.0f);
}

INLINE void scales_of_halves(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m)
{
    *d = lanes_half4(w, 0);
    *m = lanes_half4(w, 2);
}

INLINE void scales_of_e8m0(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m)
{
    const float x[4] = {e8m0_half_to_f32(w[0][0]), e8m0_half_to_f32(w[1][0]),
                        e8m0_half_to_f32(w[2][0]), e8m0_half_to_f32(w[3][0])};

    *d = vld1q_f32(x);
    *m = vdupq_n_f32(0.0f);
}

#define BLOCKS32(fmt, offset_, scales_)                                                            \
    static const struct blocks32 blocks32_##fmt = {                                                \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .offset = offset_,                                                                         \
        .block = block_##fmt,                                                                      \
        .scales = scales_,                                                                         \
    }

BLOCKS32(q4_0, false, scales_of_half);
BLOCKS32(q4_1, true, scales_of_halves);
BLOCKS32(q5_0, false, scales_of_half);
BLOCKS32(q5_1, true, scales_of_halves);
BLOCKS32(q8_0, false, scales_of_half);
BLOCKS32(iq4_nl, false, scales_of_half);
BLOCKS32(mxfp4, false, scales_of_e8m0);
