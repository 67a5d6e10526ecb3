/*
 * vec_avx2 - eight floats under the names by which columns.h and attn_tiles.h,
 * which are written once for all widths, know a vector and what it can do.
 */
#pragma once

#include "backends/cpu/avx2/math_avx2.h"

#define VEC_WIDTH 8

typedef __m256 vec;

static inline vec vec_load(const float *p, size_t left)
{
    return load8(p, left);
}

static inline void vec_store(float *p, size_t left, vec v)
{
    store8(p, left, v);
}

static inline vec vec_loadu(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void vec_storeu(float *p, vec v)
{
    _mm256_storeu_ps(p, v);
}

static inline vec vec_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline vec vec_zero(void)
{
    return _mm256_setzero_ps();
}

static inline vec vec_mul(vec a, vec b)
{
    return _mm256_mul_ps(a, b);
}

static inline vec vec_add(vec a, vec b)
{
    return _mm256_add_ps(a, b);
}

static inline vec vec_sub(vec a, vec b)
{
    return _mm256_sub_ps(a, b);
}

static inline vec vec_fma(vec a, vec b, vec c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline vec vec_exp(vec x)
{
    return exp8(x);
}
