/*
 * math_avx2 - the steps of math.h for eight floats, and the sums of sixteen
 * partials.  Bit for bit what math.h and kernels_tree16() give.
 */
#pragma once

#include <immintrin.h>
#include <stddef.h>

#include "backends/cpu/math.h"

/* All bits of the first n of eight lanes. */
static inline __m256i tail8(size_t n)
{
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n < 8 ? (int)n : 8), lane);
}

/* Up to eight floats; lanes past n are zero and their memory is not touched. */
static inline __m256 load8(const float *x, size_t n)
{
    return n >= 8 ? _mm256_loadu_ps(x) : _mm256_maskload_ps(x, tail8(n));
}

static inline void store8(float *y, size_t n, __m256 v)
{
    if (n >= 8)
        _mm256_storeu_ps(y, v);
    else
        _mm256_maskstore_ps(y, tail8(n), v);
}

static inline size_t left8(size_t n, size_t i)
{
    return n > i ? n - i : 0;
}

static inline __m256 exp8(__m256 x)
{
    const __m256 round = _mm256_set1_ps(MATH_ROUND);
    __m256 t, nf, r, p;
    __m256i n, half, rest;

    x = _mm256_max_ps(_mm256_set1_ps(MATH_EXP_LO), x);
    x = _mm256_min_ps(_mm256_set1_ps(MATH_EXP_HI), x);
    t = _mm256_add_ps(_mm256_mul_ps(x, _mm256_set1_ps(MATH_LOG2E)), round);
    n = _mm256_sub_epi32(_mm256_castps_si256(t), _mm256_castps_si256(round));
    nf = _mm256_sub_ps(t, round);
    r = _mm256_fmadd_ps(nf, _mm256_set1_ps(-MATH_LN2_HI), x);
    r = _mm256_fmadd_ps(nf, _mm256_set1_ps(-MATH_LN2_LO), r);

    p = _mm256_fmadd_ps(_mm256_set1_ps(MATH_EXP_C0), r, _mm256_set1_ps(MATH_EXP_C1));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_C2));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_C3));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_C4));
    p = _mm256_fmadd_ps(p, r, _mm256_set1_ps(MATH_EXP_C5));
    p = _mm256_fmadd_ps(p, _mm256_mul_ps(r, r), r);
    p = _mm256_add_ps(p, _mm256_set1_ps(1.0f));

    half = _mm256_srai_epi32(n, 1);
    rest = _mm256_sub_epi32(n, half);
    half = _mm256_slli_epi32(_mm256_add_epi32(half, _mm256_set1_epi32(127)), 23);
    rest = _mm256_slli_epi32(_mm256_add_epi32(rest, _mm256_set1_epi32(127)), 23);
    p = _mm256_mul_ps(p, _mm256_castsi256_ps(half));
    return _mm256_mul_ps(p, _mm256_castsi256_ps(rest));
}

static inline __m256 tanh8(__m256 x)
{
    const __m256 sign = _mm256_set1_ps(-0.0f);
    __m256 a = _mm256_andnot_ps(sign, x);
    __m256 z = _mm256_mul_ps(x, x);
    __m256 p, big;

    p = _mm256_fmadd_ps(_mm256_set1_ps(MATH_TANH_C0), z, _mm256_set1_ps(MATH_TANH_C1));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_TANH_C2));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_TANH_C3));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_TANH_C4));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, z), x, x);

    big = _mm256_add_ps(exp8(_mm256_add_ps(a, a)), _mm256_set1_ps(1.0f));
    big = _mm256_sub_ps(_mm256_set1_ps(1.0f), _mm256_div_ps(_mm256_set1_ps(2.0f), big));
    big = _mm256_or_ps(big, _mm256_and_ps(x, sign));
    return _mm256_blendv_ps(big, p, _mm256_cmp_ps(a, _mm256_set1_ps(MATH_TANH_CUT), _CMP_LT_OQ));
}

static inline __m256 silu8(__m256 x)
{
    __m256 minus = _mm256_xor_ps(x, _mm256_set1_ps(-0.0f));

    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp8(minus)));
}

static inline __m256 sigmoid8(__m256 x)
{
    const __m256 one = _mm256_set1_ps(1.0f);

    return _mm256_div_ps(one, _mm256_add_ps(one, exp8(_mm256_xor_ps(x, _mm256_set1_ps(-0.0f)))));
}

static inline __m256 softplus8(__m256 x)
{
    __m256 u = exp8(_mm256_or_ps(x, _mm256_set1_ps(-0.0f)));
    __m256 s = _mm256_div_ps(u, _mm256_add_ps(_mm256_set1_ps(2.0f), u));
    __m256 z = _mm256_mul_ps(s, s);
    __m256 p = _mm256_fmadd_ps(_mm256_set1_ps(MATH_LOGP_C7), z, _mm256_set1_ps(MATH_LOGP_C6));

    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_LOGP_C5));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_LOGP_C4));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_LOGP_C3));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_LOGP_C2));
    p = _mm256_fmadd_ps(p, z, _mm256_set1_ps(MATH_LOGP_C1));
    p = _mm256_fmadd_ps(_mm256_mul_ps(p, z), s, s);
    return _mm256_add_ps(_mm256_max_ps(x, _mm256_setzero_ps()), _mm256_add_ps(p, p));
}

static inline __m256 gelu8(__m256 x)
{
    __m256 in =
        _mm256_fmadd_ps(_mm256_mul_ps(_mm256_set1_ps(MATH_GELU_A), x), x, _mm256_set1_ps(1.0f));
    __m256 u = _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(MATH_GELU_B), x), in);

    return _mm256_mul_ps(_mm256_mul_ps(_mm256_set1_ps(0.5f), x),
                         _mm256_add_ps(_mm256_set1_ps(1.0f), tanh8(u)));
}

static inline __m256 clamped8(__m256 x)
{
    __m256 minus;

    x = _mm256_min_ps(_mm256_set1_ps(MATH_CLAMP), x);
    minus = _mm256_xor_ps(_mm256_mul_ps(_mm256_set1_ps(MATH_CLAMP_A), x), _mm256_set1_ps(-0.0f));
    return _mm256_div_ps(x, _mm256_add_ps(_mm256_set1_ps(1.0f), exp8(minus)));
}

static inline __m256 clamp8(__m256 y)
{
    y = _mm256_max_ps(_mm256_set1_ps(-MATH_CLAMP), y);
    return _mm256_min_ps(_mm256_set1_ps(MATH_CLAMP), y);
}

/* kernels_tree16() of partials 0 … 7 in a, 8 … 15 in b. */
static inline float tree16(__m256 a, __m256 b)
{
    __m256 s = _mm256_add_ps(a, b);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(s), _mm256_extractf128_ps(s, 1));

    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

/* The largest lane; no lane is NaN. */
static inline float most8(__m256 m)
{
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));

    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}
