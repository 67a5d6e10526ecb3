/*
 * math_neon - the steps of math.h for four floats, and the sums of sixteen
 * partials.  Bit for bit what math.h and kernels_tree16() give.
 */
#pragma once

#include <arm_neon.h>
#include <stddef.h>
#include <string.h>

#include "backends/cpu/math.h"

static inline size_t left_of(size_t n, size_t i)
{
    return n > i ? n - i : 0;
}

/* Up to four floats; lanes past n are zero and their memory is not touched. */
static inline float32x4_t load4(const float *x, size_t n)
{
    float last[4] = {0};

    if (n >= 4)
        return vld1q_f32(x);
    memcpy(last, x, n * sizeof(*x));
    return vld1q_f32(last);
}

static inline void store4(float *y, size_t n, float32x4_t v)
{
    float last[4];

    if (n >= 4) {
        vst1q_f32(y, v);
        return;
    }
    vst1q_f32(last, v);
    memcpy(y, last, n * sizeof(*y));
}

/* All bits of the first n of four lanes. */
static inline uint32x4_t tail4(size_t n)
{
    const uint32_t lane[4] = {0, 1, 2, 3};

    return vcltq_u32(vld1q_u32(lane), vdupq_n_u32(n < 4 ? (uint32_t)n : 4));
}

static inline float32x4_t exp4(float32x4_t x)
{
    const float32x4_t round = vdupq_n_f32(MATH_ROUND);
    float32x4_t t, nf, r, p;
    int32x4_t n, half, rest;

    x = vmaxq_f32(vdupq_n_f32(MATH_EXP_LO), x);
    x = vminq_f32(vdupq_n_f32(MATH_EXP_HI), x);
    t = vaddq_f32(vmulq_f32(x, vdupq_n_f32(MATH_LOG2E)), round);
    n = vsubq_s32(vreinterpretq_s32_f32(t), vreinterpretq_s32_f32(round));
    nf = vsubq_f32(t, round);
    r = vfmaq_f32(x, nf, vdupq_n_f32(-MATH_LN2_HI));
    r = vfmaq_f32(r, nf, vdupq_n_f32(-MATH_LN2_LO));

    p = vfmaq_f32(vdupq_n_f32(MATH_EXP_C1), vdupq_n_f32(MATH_EXP_C0), r);
    p = vfmaq_f32(vdupq_n_f32(MATH_EXP_C2), p, r);
    p = vfmaq_f32(vdupq_n_f32(MATH_EXP_C3), p, r);
    p = vfmaq_f32(vdupq_n_f32(MATH_EXP_C4), p, r);
    p = vfmaq_f32(vdupq_n_f32(MATH_EXP_C5), p, r);
    p = vfmaq_f32(r, p, vmulq_f32(r, r));
    p = vaddq_f32(p, vdupq_n_f32(1.0f));

    half = vshrq_n_s32(n, 1);
    rest = vsubq_s32(n, half);
    half = vshlq_n_s32(vaddq_s32(half, vdupq_n_s32(127)), 23);
    rest = vshlq_n_s32(vaddq_s32(rest, vdupq_n_s32(127)), 23);
    p = vmulq_f32(p, vreinterpretq_f32_s32(half));
    return vmulq_f32(p, vreinterpretq_f32_s32(rest));
}

static inline float32x4_t tanh4(float32x4_t x)
{
    const uint32x4_t sign = vdupq_n_u32(0x80000000u);
    float32x4_t a = vabsq_f32(x);
    float32x4_t z = vmulq_f32(x, x);
    float32x4_t p, big;

    p = vfmaq_f32(vdupq_n_f32(MATH_TANH_C1), vdupq_n_f32(MATH_TANH_C0), z);
    p = vfmaq_f32(vdupq_n_f32(MATH_TANH_C2), p, z);
    p = vfmaq_f32(vdupq_n_f32(MATH_TANH_C3), p, z);
    p = vfmaq_f32(vdupq_n_f32(MATH_TANH_C4), p, z);
    p = vfmaq_f32(x, vmulq_f32(p, z), x);

    big = vaddq_f32(exp4(vaddq_f32(a, a)), vdupq_n_f32(1.0f));
    big = vsubq_f32(vdupq_n_f32(1.0f), vdivq_f32(vdupq_n_f32(2.0f), big));
    big = vreinterpretq_f32_u32(
        vorrq_u32(vreinterpretq_u32_f32(big), vandq_u32(vreinterpretq_u32_f32(x), sign)));
    return vbslq_f32(vcltq_f32(a, vdupq_n_f32(MATH_TANH_CUT)), p, big);
}

static inline float32x4_t silu4(float32x4_t x)
{
    return vdivq_f32(x, vaddq_f32(vdupq_n_f32(1.0f), exp4(vnegq_f32(x))));
}

static inline float32x4_t sigmoid4(float32x4_t x)
{
    const float32x4_t one = vdupq_n_f32(1.0f);

    return vdivq_f32(one, vaddq_f32(one, exp4(vnegq_f32(x))));
}

static inline float32x4_t softplus4(float32x4_t x)
{
    const float32x4_t zero = vdupq_n_f32(0.0f);
    float32x4_t u = exp4(vnegq_f32(vabsq_f32(x)));
    float32x4_t s = vdivq_f32(u, vaddq_f32(vdupq_n_f32(2.0f), u));
    float32x4_t z = vmulq_f32(s, s);
    float32x4_t p = vfmaq_f32(vdupq_n_f32(MATH_LOGP_C6), vdupq_n_f32(MATH_LOGP_C7), z);

    p = vfmaq_f32(vdupq_n_f32(MATH_LOGP_C5), p, z);
    p = vfmaq_f32(vdupq_n_f32(MATH_LOGP_C4), p, z);
    p = vfmaq_f32(vdupq_n_f32(MATH_LOGP_C3), p, z);
    p = vfmaq_f32(vdupq_n_f32(MATH_LOGP_C2), p, z);
    p = vfmaq_f32(vdupq_n_f32(MATH_LOGP_C1), p, z);
    p = vfmaq_f32(s, vmulq_f32(p, z), s);
    return vaddq_f32(vbslq_f32(vcgtq_f32(x, zero), x, zero), vaddq_f32(p, p));
}

static inline float32x4_t gelu4(float32x4_t x)
{
    float32x4_t in = vfmaq_f32(vdupq_n_f32(1.0f), vmulq_f32(vdupq_n_f32(MATH_GELU_A), x), x);
    float32x4_t u = vmulq_f32(vmulq_f32(vdupq_n_f32(MATH_GELU_B), x), in);

    return vmulq_f32(vmulq_f32(vdupq_n_f32(0.5f), x), vaddq_f32(vdupq_n_f32(1.0f), tanh4(u)));
}

static inline float32x4_t clamped4(float32x4_t x)
{
    x = vminq_f32(vdupq_n_f32(MATH_CLAMP), x);
    return vdivq_f32(
        x, vaddq_f32(vdupq_n_f32(1.0f), exp4(vnegq_f32(vmulq_f32(vdupq_n_f32(MATH_CLAMP_A), x)))));
}

static inline float32x4_t clamp4(float32x4_t y)
{
    return vminq_f32(vdupq_n_f32(MATH_CLAMP), vmaxq_f32(vdupq_n_f32(-MATH_CLAMP), y));
}

/* kernels_tree16() of partials 4 i … 4 i + 3 in p[i]. */
static inline float tree16(const float32x4_t p[4])
{
    float32x4_t q = vaddq_f32(vaddq_f32(p[0], p[2]), vaddq_f32(p[1], p[3]));
    float32x2_t h = vadd_f32(vget_low_f32(q), vget_high_f32(q));

    return vget_lane_f32(h, 0) + vget_lane_f32(h, 1);
}

/* m, or v where that is larger; m where v is NaN, as the twin's comparison. */
static inline float32x4_t more4(float32x4_t v, float32x4_t m)
{
    return vbslq_f32(vcgtq_f32(v, m), v, m);
}
