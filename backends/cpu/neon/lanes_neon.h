/*
 * lanes_neon - the small parts that all Arm matrix kernels share.
 *
 * The three tiers (neon, dotprod, i8mm) have one set of bodies, in this
 * folder.  What differs among them is how sixteen products of bytes become
 * sums, and that is handed to the bodies as a constant (dot16_fn here, struct
 * panel_kind in panel_neon.h), so that it is inlined; each folder compiles
 * them with its own flags.
 */
#pragma once

#include <arm_neon.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define INLINE static inline __attribute__((always_inline))

/* sum plus, in four dwords, the sixteen products w[i] * a[i]; a is in -127 … 127. */
typedef int32x4_t dot16_fn(int32x4_t sum, int8x16_t w, int8x16_t a);

/* Element i = the sum of the four elements of x[i]. */
INLINE int32x4_t lanes_sum4(const int32x4_t x[4])
{
    return vpaddq_s32(vpaddq_s32(x[0], x[1]), vpaddq_s32(x[2], x[3]));
}

INLINE uint16_t lanes_u16(const uint8_t *p)
{
    uint16_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

INLINE uint32_t lanes_u32(const uint8_t *p)
{
    uint32_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

/* The f16 at byte `at` of four blocks. */
INLINE float32x4_t lanes_half4(const uint8_t *const w[4], size_t at)
{
    uint16x4_t h = vdup_n_u16(lanes_u16(w[0] + at));

    h = vset_lane_u16(lanes_u16(w[1] + at), h, 1);
    h = vset_lane_u16(lanes_u16(w[2] + at), h, 2);
    h = vset_lane_u16(lanes_u16(w[3] + at), h, 3);
    return vcvt_f32_f16(vreinterpret_f16_u16(h));
}

INLINE int8x16_t lanes_low(uint8x16_t x)
{
    return vreinterpretq_s8_u8(vandq_u8(x, vdupq_n_u8(15)));
}

INLINE int8x16_t lanes_high(uint8x16_t x)
{
    return vreinterpretq_s8_u8(vshrq_n_u8(x, 4));
}

/* Bytes to dwords: x[i] are bytes 4i … 4i + 3. */
INLINE void lanes_widen(int8x16_t bytes, int32x4_t x[4])
{
    int16x8_t lo = vmovl_s8(vget_low_s8(bytes)), hi = vmovl_high_s8(bytes);

    x[0] = vmovl_s16(vget_low_s16(lo));
    x[1] = vmovl_high_s16(lo);
    x[2] = vmovl_s16(vget_low_s16(hi));
    x[3] = vmovl_high_s16(hi);
}
