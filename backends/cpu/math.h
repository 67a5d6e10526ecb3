/*
 * math - the transcendentals of the CPU kernels, as one fixed sequence of
 * IEEE single operations.  Every tier makes the same steps with its own
 * vectors (avx2/math_avx2.h and its sisters), so every tier gives these bits.
 *
 *   math_exp   relative error ≤ 1.2e-7 against libm where the result is normal;
 *              0 below -104, infinity above 89, NaN stays NaN
 *   math_tanh  relative error ≤ 3e-7
 *   math_softplus relative error ≤ 4e-7
 *   math_silu, math_gelu (tanh form)  absolute error ≤ 4e-7 * max(1, |x|)
 *   math_clamped, math_clamp          the two factors of gpt-oss's clamped SwiGLU (its model card,
 *              OpenAI 2025, arXiv 2508.10925): x sigmoid(1.702 x) of x ≤ 7; y in [-7, 7]
 *
 * (tests/unit/cpu/test_math.c holds them to it.)  The polynomials are those of
 * the Cephes library (S. L. Moshier, single precision), evaluated by fma.
 *
 * The double ones serve tables that are made once (RoPE); scalar on every
 * machine.  Relative error ≤ 4e-16 (exp, log), absolute ≤ 4e-16 (sin, cos) for
 * |x| ≤ 2^20.
 *
 * Any thread.
 */
#pragma once

#include <stdint.h>
#include <string.h>

#define MATH_EXP_LO   -104.0f
#define MATH_EXP_HI   89.0f
#define MATH_LOG2E    1.44269504088896341f
#define MATH_LN2_HI   0.693359375f
#define MATH_LN2_LO   -2.12194440e-4f
#define MATH_ROUND    12582912.0f /* 1.5 * 2^23: adding it rounds to an integer */
#define MATH_EXP_C0   1.9875691500e-4f
#define MATH_EXP_C1   1.3981999507e-3f
#define MATH_EXP_C2   8.3334519073e-3f
#define MATH_EXP_C3   4.1665795894e-2f
#define MATH_EXP_C4   1.6666665459e-1f
#define MATH_EXP_C5   5.0000001201e-1f
#define MATH_TANH_CUT 0.625f
#define MATH_TANH_C0  -5.70498872745e-3f
#define MATH_TANH_C1  2.06390887954e-2f
#define MATH_TANH_C2  -5.37397155531e-2f
#define MATH_TANH_C3  1.33314422036e-1f
#define MATH_TANH_C4  -3.33332819422e-1f
#define MATH_LOGP_C1  (1.0f / 3)
#define MATH_LOGP_C2  (1.0f / 5)
#define MATH_LOGP_C3  (1.0f / 7)
#define MATH_LOGP_C4  (1.0f / 9)
#define MATH_LOGP_C5  (1.0f / 11)
#define MATH_LOGP_C6  (1.0f / 13)
#define MATH_LOGP_C7  (1.0f / 15)
#define MATH_GELU_A   0.044715f
#define MATH_GELU_B   0.797884560802865f /* sqrt(2 / pi) */
#define MATH_CLAMP_A  1.702f
#define MATH_CLAMP    7.0f

static inline int32_t math_bits(float x)
{
    int32_t i;

    memcpy(&i, &x, sizeof(i));
    return i;
}

static inline float math_float(int32_t i)
{
    float x;

    memcpy(&x, &i, sizeof(x));
    return x;
}

/* e^x = 2^n e^r; 2^n in two factors, so that subnormal results round once. */
static inline float math_exp(float x)
{
    float t, nf, r, p;
    int32_t n, half;

    x = MATH_EXP_LO > x ? MATH_EXP_LO : x;
    x = MATH_EXP_HI < x ? MATH_EXP_HI : x;
    t = x * MATH_LOG2E + MATH_ROUND;
    n = (int32_t)((uint32_t)math_bits(t) - (uint32_t)math_bits(MATH_ROUND));
    nf = t - MATH_ROUND;
    r = __builtin_fmaf(nf, -MATH_LN2_HI, x);
    r = __builtin_fmaf(nf, -MATH_LN2_LO, r);

    p = __builtin_fmaf(MATH_EXP_C0, r, MATH_EXP_C1);
    p = __builtin_fmaf(p, r, MATH_EXP_C2);
    p = __builtin_fmaf(p, r, MATH_EXP_C3);
    p = __builtin_fmaf(p, r, MATH_EXP_C4);
    p = __builtin_fmaf(p, r, MATH_EXP_C5);
    p = __builtin_fmaf(p, r * r, r) + 1.0f;

    half = n >> 1;
    p = p * math_float((int32_t)((uint32_t)(half + 127) << 23));
    return p * math_float((int32_t)((uint32_t)(n - half + 127) << 23));
}

static inline float math_tanh(float x)
{
    float a = math_float(math_bits(x) & 0x7fffffff);
    float z = x * x;
    float p, big;

    p = __builtin_fmaf(MATH_TANH_C0, z, MATH_TANH_C1);
    p = __builtin_fmaf(p, z, MATH_TANH_C2);
    p = __builtin_fmaf(p, z, MATH_TANH_C3);
    p = __builtin_fmaf(p, z, MATH_TANH_C4);
    p = __builtin_fmaf(p * z, x, x);

    big = 1.0f - 2.0f / (math_exp(a + a) + 1.0f);
    big = math_float(math_bits(big) | (math_bits(x) & INT32_MIN));
    return a < MATH_TANH_CUT ? p : big;
}

/* The sign is flipped as a bit: -x of a NaN is then the same everywhere. */
static inline float math_silu(float x)
{
    return x / (1.0f + math_exp(math_float(math_bits(x) ^ INT32_MIN)));
}

static inline float math_sigmoid(float x)
{
    return 1.0f / (1.0f + math_exp(math_float(math_bits(x) ^ INT32_MIN)));
}

/* ln(1 + e^x) = max(x, 0) + ln(1 + e^-|x|); ln(1 + u) = 2 artanh(u / (2 + u)) by its series. */
static inline float math_softplus(float x)
{
    float u = math_exp(math_float(math_bits(x) | INT32_MIN));
    float s = u / (2.0f + u);
    float z = s * s;
    float p = __builtin_fmaf(MATH_LOGP_C7, z, MATH_LOGP_C6);

    p = __builtin_fmaf(p, z, MATH_LOGP_C5);
    p = __builtin_fmaf(p, z, MATH_LOGP_C4);
    p = __builtin_fmaf(p, z, MATH_LOGP_C3);
    p = __builtin_fmaf(p, z, MATH_LOGP_C2);
    p = __builtin_fmaf(p, z, MATH_LOGP_C1);
    p = __builtin_fmaf(p * z, s, s);
    return (x > 0.0f ? x : 0.0f) + (p + p);
}

static inline float math_gelu(float x)
{
    float u = MATH_GELU_B * x * __builtin_fmaf(MATH_GELU_A * x, x, 1.0f);

    return 0.5f * x * (1.0f + math_tanh(u));
}

static inline float math_clamped(float x)
{
    x = MATH_CLAMP < x ? MATH_CLAMP : x;
    return x / (1.0f + math_exp(math_float(math_bits(MATH_CLAMP_A * x) ^ INT32_MIN)));
}

static inline float math_clamp(float y)
{
    y = -MATH_CLAMP > y ? -MATH_CLAMP : y;
    return MATH_CLAMP < y ? MATH_CLAMP : y;
}

double math_exp64(double x);
double math_log64(double x); /* x > 0 and normal */
void math_sincos64(double x, double *ret_sin, double *ret_cos);
