/*
 * blocks256_neon - formats of 256 weights: a block as sixteen vectors of
 * signed bytes in natural order, its scales and minima as bytes.
 *
 * subs is 8 where a scale counts for 32 weights, 16 where it counts for 16;
 * minima are always one for each 16, as the sums of activations are.
 */
#pragma once

#include "backends/cpu/neon/lanes_neon.h"
#include "backends/formats/blocks.h"
#include "backends/formats/half.h"
#include "backends/formats/iq_tables.h"
#include "backends/formats/unpack.h"

struct parts256 {
    int8x16_t q[16];
    int8x16_t scale;  /* the first subs of them */
    int8x16_t minima; /* 0 … 63; where the format has any */
};

struct blocks256 {
    size_t bytes;
    size_t subs;
    bool minima;
    void (*block)(const uint8_t *w, struct parts256 *p);
    /* d (and m) of four blocks, wherever they lie. */
    void (*scales)(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m);
};

/* -- q4_k, q5_k --------------------------------------------------------------------------- */

/* The 6 + 6 bits of k_scale() and k_min(), four to a word. */
INLINE void scales_k(const uint8_t *w, struct parts256 *p)
{
    uint32_t u0 = lanes_u32(w), u1 = lanes_u32(w + 4), u2 = lanes_u32(w + 8);
    uint32_t scale = (u2 & 0x0f0f0f0f) | (u0 >> 2 & 0x30303030);
    uint32_t least = (u2 >> 4 & 0x0f0f0f0f) | (u1 >> 2 & 0x30303030);
    int8x8_t s = vcreate_s8((uint64_t)scale << 32 | (u0 & 0x3f3f3f3f));
    int8x8_t m = vcreate_s8((uint64_t)least << 32 | (u1 & 0x3f3f3f3f));

    p->scale = vcombine_s8(s, s);
    p->minima = vcombine_s8(vzip1_s8(m, m), vzip2_s8(m, m));
}

INLINE void block_q4_k(const uint8_t *w, struct parts256 *p)
{
#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        uint8x16_t x = vld1q_u8(w + 16 + 16 * i);

        p->q[i / 2 * 4 + i % 2] = lanes_low(x);
        p->q[i / 2 * 4 + 2 + i % 2] = lanes_high(x);
    }
    scales_k(w + 4, p);
}

INLINE void block_q5_k(const uint8_t *w, struct parts256 *p)
{
    const uint8x16_t bit = vdupq_n_u8(16);

#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        uint8x16_t top = vld1q_u8(w + 16 + 16 * h);

#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            uint8x16_t x = vld1q_u8(w + 48 + 32 * i + 16 * h);
            int8x16_t a = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(top, 4), bit));
            int8x16_t b = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(top, 3), bit));

            p->q[4 * i + h] = vorrq_s8(lanes_low(x), a);
            p->q[4 * i + 2 + h] = vorrq_s8(lanes_high(x), b);
            top = vshrq_n_u8(top, 2);
        }
    }
    scales_k(w + 4, p);
}

/* -- scales of sixteen ------------------------------------------------------------------------ */

/* Bits 2j, 2j + 1 of every byte. */
INLINE uint8x16_t two_bits(uint8x16_t x, int j)
{
    return vandq_u8(vshlq_u8(x, vdupq_n_s8((int8_t)(-2 * j))), vdupq_n_u8(3));
}

INLINE void block_q6_k(const uint8_t *w, struct parts256 *p)
{
    const uint8x16_t bits = vdupq_n_u8(48);
    const int8x16_t zero = vdupq_n_s8(32);

#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        const uint8_t *ql = w + i / 2 * 64 + i % 2 * 16;
        uint8x16_t a = vld1q_u8(ql), b = vld1q_u8(ql + 32);
        uint8x16_t h = vld1q_u8(w + 128 + 16 * i);
        int8x16_t h0 = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(h, 4), bits));
        int8x16_t h1 = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(h, 2), bits));
        int8x16_t h2 = vreinterpretq_s8_u8(vandq_u8(h, bits));
        int8x16_t h3 = vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(h, 2), bits));
        int8x16_t *q = p->q + i / 2 * 8 + i % 2;

        q[0] = vsubq_s8(vorrq_s8(lanes_low(a), h0), zero);
        q[2] = vsubq_s8(vorrq_s8(lanes_low(b), h1), zero);
        q[4] = vsubq_s8(vorrq_s8(lanes_high(a), h2), zero);
        q[6] = vsubq_s8(vorrq_s8(lanes_high(b), h3), zero);
    }
    p->scale = vreinterpretq_s8_u8(vld1q_u8(w + 192));
}

/* The sixteen six-bit scales of q3_k_scale(), less 32. */
INLINE int8x16_t scales_q3_k(const uint8_t *w)
{
    const int32_t shift[4] = {0, -2, -4, -6};
    uint8x8_t x = vld1_u8(w);
    uint8x16_t low = vcombine_u8(vand_u8(x, vdup_n_u8(15)), vshr_n_u8(x, 4));
    uint32x4_t top = vshlq_u32(vdupq_n_u32(lanes_u32(w + 8)), vld1q_s32(shift));
    uint8x16_t high = vshlq_n_u8(vandq_u8(vreinterpretq_u8_u32(top), vdupq_n_u8(3)), 4);

    return vsubq_s8(vreinterpretq_s8_u8(vorrq_u8(low, high)), vdupq_n_s8(32));
}

INLINE void block_q3_k(const uint8_t *w, struct parts256 *p)
{
#pragma GCC unroll 2
    for (size_t h = 0; h < 2; h++) {
        uint8x16_t top = vld1q_u8(w + 16 * h);

#pragma GCC unroll 8
        for (int j = 0; j < 8; j++) {
            uint8x16_t x = two_bits(vld1q_u8(w + 32 + j / 4 * 32 + 16 * h), j % 4);
            uint8x16_t t = vtstq_u8(top, vdupq_n_u8((uint8_t)(1 << j)));

            x = vorrq_u8(x, vandq_u8(t, vdupq_n_u8(4)));
            p->q[2 * (size_t)j + h] = vsubq_s8(vreinterpretq_s8_u8(x), vdupq_n_s8(4));
        }
    }
    p->scale = scales_q3_k(w + 96);
}

/* 2 × 32 bytes of four weights each. */
INLINE void quarters(const uint8_t *qs, int8_t zero, struct parts256 *p)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        uint8x16_t x = vld1q_u8(qs + 16 * i);

#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            p->q[i / 2 * 8 + i % 2 + 2 * (size_t)j] =
                vsubq_s8(vreinterpretq_s8_u8(two_bits(x, j)), vdupq_n_s8(zero));
    }
}

INLINE void block_q2_k(const uint8_t *w, struct parts256 *p)
{
    uint8x16_t x = vld1q_u8(w);

    quarters(w + 16, 0, p);
    p->scale = lanes_low(x);
    p->minima = lanes_high(x);
}

INLINE void block_tq2_0(const uint8_t *w, struct parts256 *p)
{
    quarters(w, 1, p);
    p->scale = vdupq_n_s8(1);
}

/* -- iq4_xs, and any other -------------------------------------------------------------------- */

/* Eight scales ls - 32: four bits of scales_l, two of scales_h each. */
INLINE int8x8_t scales_iq4_xs(const uint8_t *w)
{
    const int16_t shift[8] = {0, -2, -4, -6, -8, -10, -12, -14};
    uint16x8_t top = vshlq_u16(vdupq_n_u16(lanes_u16(w + 2)), vld1q_s16(shift));
    uint8x8_t high = vshl_n_u8(vand_u8(vmovn_u16(top), vdup_n_u8(3)), 4);
    uint8x8_t x = vcreate_u8(lanes_u32(w + 4));
    uint8x8_t low = vzip1_u8(vand_u8(x, vdup_n_u8(15)), vshr_n_u8(x, 4));

    return vsub_s8(vreinterpret_s8_u8(vorr_u8(low, high)), vdup_n_s8(32));
}

INLINE void block_iq4_xs(const uint8_t *w, struct parts256 *p)
{
    const int8x16_t values = vld1q_s8(iq4_values);
    int8x8_t s = scales_iq4_xs(w);

#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        uint8x16_t x = vld1q_u8(w + 8 + 16 * i);

        p->q[2 * i] = vqtbl1q_s8(values, vreinterpretq_u8_s8(lanes_low(x)));
        p->q[2 * i + 1] = vqtbl1q_s8(values, vreinterpretq_u8_s8(lanes_high(x)));
    }
    p->scale = vcombine_s8(s, s);
}

/* A format with scales by its own unpack. */
INLINE void block_unpack(unpack_fn *unpack, const uint8_t *w, struct parts256 *p)
{
    struct unpacked u;
    int8_t scale[16];

    unpack(w, &u);
    for (size_t i = 0; i < 16; i++) {
        p->q[i] = vld1q_s8(u.q + 16 * i);
        scale[i] = (int8_t)u.sc[i];
    }
    p->scale = vld1q_s8(scale);
}

INLINE void block_tq1_0(const uint8_t *w, struct parts256 *p)
{
    block_unpack(unpack_tq1_0, w, p);
}

/* -- the rows of the table ------------------------------------------------------------------------ */

#define BLOCKS256(fmt, subs_, d_at, m_at)                                                          \
    INLINE void scales_of_##fmt(const uint8_t *const w[4], float32x4_t *d, float32x4_t *m)         \
    {                                                                                              \
        *d = lanes_half4(w, d_at);                                                                 \
        *m = m_at ? lanes_half4(w, m_at) : vdupq_n_f32(0.0f);                                      \
    }                                                                                              \
    static const struct blocks256 blocks256_##fmt = {                                              \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .subs = subs_,                                                                             \
        .minima = m_at != 0,                                                                       \
        .block = block_##fmt,                                                                      \
        .scales = scales_of_##fmt,                                                                 \
    }

BLOCKS256(q2_k, 16, 80, 82);
BLOCKS256(q3_k, 16, 108, 0);
BLOCKS256(q4_k, 8, 0, 2);
BLOCKS256(q5_k, 8, 0, 2);
BLOCKS256(q6_k, 16, 208, 0);
BLOCKS256(iq4_xs, 8, 0, 0);
BLOCKS256(tq1_0, 16, 52, 0);
BLOCKS256(tq2_0, 16, 64, 0);
