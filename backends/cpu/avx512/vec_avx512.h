/*
 * vec_avx512 - sixteen floats under the names by which columns.h and attn_tiles.h,
 * which are written once for all widths, know a vector and what it can do.
 */
#pragma once

#include "backends/cpu/avx512/math_avx512.h"

#define VEC_WIDTH 16

typedef __m512 vec;

static inline vec vec_load(const float *p, size_t left)
{
    return _mm512_maskz_loadu_ps(tail16(left), p);
}

static inline void vec_store(float *p, size_t left, vec v)
{
    _mm512_mask_storeu_ps(p, tail16(left), v);
}

static inline vec vec_loadu(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void vec_storeu(float *p, vec v)
{
    _mm512_storeu_ps(p, v);
}

static inline vec vec_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline vec vec_zero(void)
{
    return _mm512_setzero_ps();
}

static inline vec vec_mul(vec a, vec b)
{
    return _mm512_mul_ps(a, b);
}

static inline vec vec_add(vec a, vec b)
{
    return _mm512_add_ps(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return _mm512_sub_ps(a, b);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline vec vec_exp(vec x)
{
    return exp16(x);
}
