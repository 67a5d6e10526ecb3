/*
 * quantize_neon - the largest of n floats, and 16 floats to 16 bytes.
 *
 * The rule is act.h's.  Values here are finite: callers give blocks with an
 * infinity or a NaN, and blocks too small for a scale, to the scalar twin.
 */
#pragma once

#include <arm_neon.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/kernels.h"
#include "backends/formats/half.h"

/* Bits of the largest |x|, n a multiple of 4; as integers: the order of floats, NaN on top. */
static inline uint32_t quantize_largest(const float *x, size_t n)
{
    uint32x4_t max = vdupq_n_u32(0);

    for (size_t i = 0; i < n; i += 4)
        max = vmaxq_u32(
            max, vandq_u32(vreinterpretq_u32_f32(vld1q_f32(x + i)), vdupq_n_u32(0x7fffffff)));
    return vmaxvq_u32(max);
}

/* vcvtn rounds to nearest, ties to even. */
static inline int8x16_t quantize_bytes(const float *x, float inv)
{
    int32x4_t a = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x), inv));
    int32x4_t b = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 4), inv));
    int32x4_t c = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 8), inv));
    int32x4_t d = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(x + 12), inv));
    int16x8_t lo = vcombine_s16(vmovn_s32(a), vmovn_s32(b));
    int16x8_t hi = vcombine_s16(vmovn_s32(c), vmovn_s32(d));

    return vcombine_s8(vmovn_s16(lo), vmovn_s16(hi));
}
