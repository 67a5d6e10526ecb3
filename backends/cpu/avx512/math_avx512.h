/*
 * math_avx512 - the steps of math.h for sixteen floats, and the sums of
 * sixteen partials.  Bit for bit what math.h and kernels_tree16() give.
 */
#pragma once

#include <immintrin.h>
#include <stddef.h>

#include "backends/cpu/math.h"

static inline __mmask16 tail16(size_t n)
{
    return n >= 16 ? (__mmask16)0xffff : (__mmask16)((1u << n) - 1);
}

/* 2^n in one step: math_exp()'s first factor is exact, so both round once, and the same. */
static inline __m512 exp16(__m512 x)
{
    const __m512 round = _mm512_set1_ps(MATH_ROUND);
    __m512 t, nf, r, p;

    x = _mm512_max_ps(_mm512_set1_ps(MATH_EXP_LO), x);
    x = _mm512_min_ps(_mm512_set1_ps(MATH_EXP_HI), x);
    t = _mm512_add_ps(_mm512_mul_ps(x, _mm512_set1_ps(MATH_LOG2E)), round);
    nf = _mm512_sub_ps(t, round);
    r = _mm512_fmadd_ps(nf, _mm512_set1_ps(-MATH_LN2_HI), x);
    r = _mm512_fmadd_ps(nf, _mm512_set1_ps(-MATH_LN2_LO), r);

    p = _mm512_fmadd_ps(_mm512_set1_ps(MATH_EXP_C0), r, _mm512_set1_ps(MATH_EXP_C1));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_C2));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_C3));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_C4));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(MATH_EXP_C5));
    p = _mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r);
    p = _mm512_add_ps(p, _mm512_set1_ps(1.0f));

    return _mm512_scalef_ps(p, nf);
}

static inline __m512 tanh16(__m512 x)
{
    const __m512i sign = _mm512_set1_epi32(INT32_MIN);
    __m512 a = _mm512_castsi512_ps(_mm512_andnot_si512(sign, _mm512_castps_si512(x)));
    __m512 z = _mm512_mul_ps(x, x);
    __m512 p, big;

    p = _mm512_fmadd_ps(_mm512_set1_ps(MATH_TANH_C0), z, _mm512_set1_ps(MATH_TANH_C1));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_TANH_C2));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_TANH_C3));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_TANH_C4));
    p = _mm512_fmadd_ps(_mm512_mul_ps(p, z), x, x);

    big = _mm512_add_ps(exp16(_mm512_add_ps(a, a)), _mm512_set1_ps(1.0f));
    big = _mm512_sub_ps(_mm512_set1_ps(1.0f), _mm512_div_ps(_mm512_set1_ps(2.0f), big));
    big = _mm512_castsi512_ps(
        _mm512_or_si512(_mm512_castps_si512(big), _mm512_and_si512(_mm512_castps_si512(x), sign)));
    return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, _mm512_set1_ps(MATH_TANH_CUT), _CMP_LT_OQ),
                                big, p);
}

static inline __m512 silu16(__m512 x)
{
    __m512 minus =
        _mm512_castsi512_ps(_mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN)));

    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp16(minus)));
}

static inline __m512 sigmoid16(__m512 x)
{
    const __m512 one = _mm512_set1_ps(1.0f);
    __m512i minus = _mm512_xor_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));

    return _mm512_div_ps(one, _mm512_add_ps(one, exp16(_mm512_castsi512_ps(minus))));
}

static inline __m512 softplus16(__m512 x)
{
    __m512i minus = _mm512_or_si512(_mm512_castps_si512(x), _mm512_set1_epi32(INT32_MIN));
    __m512 u = exp16(_mm512_castsi512_ps(minus));
    __m512 s = _mm512_div_ps(u, _mm512_add_ps(_mm512_set1_ps(2.0f), u));
    __m512 z = _mm512_mul_ps(s, s);
    __m512 p = _mm512_fmadd_ps(_mm512_set1_ps(MATH_LOGP_C7), z, _mm512_set1_ps(MATH_LOGP_C6));

    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_LOGP_C5));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_LOGP_C4));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_LOGP_C3));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_LOGP_C2));
    p = _mm512_fmadd_ps(p, z, _mm512_set1_ps(MATH_LOGP_C1));
    p = _mm512_fmadd_ps(_mm512_mul_ps(p, z), s, s);
    return _mm512_add_ps(_mm512_max_ps(x, _mm512_setzero_ps()), _mm512_add_ps(p, p));
}

static inline __m512 gelu16(__m512 x)
{
    __m512 in =
        _mm512_fmadd_ps(_mm512_mul_ps(_mm512_set1_ps(MATH_GELU_A), x), x, _mm512_set1_ps(1.0f));
    __m512 u = _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(MATH_GELU_B), x), in);

    return _mm512_mul_ps(_mm512_mul_ps(_mm512_set1_ps(0.5f), x),
                         _mm512_add_ps(_mm512_set1_ps(1.0f), tanh16(u)));
}

static inline __m512 clamped16(__m512 x)
{
    __m512 minus;

    x = _mm512_min_ps(_mm512_set1_ps(MATH_CLAMP), x);
    minus = _mm512_mul_ps(_mm512_set1_ps(MATH_CLAMP_A), x);
    minus = _mm512_castsi512_ps(
        _mm512_xor_si512(_mm512_castps_si512(minus), _mm512_set1_epi32(INT32_MIN)));
    return _mm512_div_ps(x, _mm512_add_ps(_mm512_set1_ps(1.0f), exp16(minus)));
}

static inline __m512 clamp16(__m512 y)
{
    y = _mm512_max_ps(_mm512_set1_ps(-MATH_CLAMP), y);
    return _mm512_min_ps(_mm512_set1_ps(MATH_CLAMP), y);
}

/* kernels_tree16() of the lanes. */
static inline float tree16(__m512 p)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}
