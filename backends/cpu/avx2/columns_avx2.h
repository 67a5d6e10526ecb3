/* columns_avx2 - the vector of columns.h: half of the sixteen columns. */
#pragma once

#include "backends/cpu/avx2/math_avx2.h"

#define COL_WIDTH 8

typedef __m256 col;

static inline col col_load(const float *p, size_t left)
{
    return load8(p, left);
}

static inline void col_store(float *p, size_t left, col v)
{
    store8(p, left, v);
}

static inline col col_loadu(const float *p)
{
    return _mm256_loadu_ps(p);
}

static inline void col_storeu(float *p, col v)
{
    _mm256_storeu_ps(p, v);
}

static inline col col_set1(float x)
{
    return _mm256_set1_ps(x);
}

static inline col col_zero(void)
{
    return _mm256_setzero_ps();
}

static inline col col_mul(col a, col b)
{
    return _mm256_mul_ps(a, b);
}

static inline col col_add(col a, col b)
{
    return _mm256_add_ps(a, b);
}

static inline col col_sub(col a, col b)
{
    return _mm256_sub_ps(a, b);
}

static inline col col_fma(col a, col b, col c)
{
    return _mm256_fmadd_ps(a, b, c);
}

static inline col col_exp(col x)
{
    return exp8(x);
}

#include "backends/cpu/columns.h"
