/* columns_avx512 - the vector of columns.h: all sixteen columns. */
#pragma once

#include "backends/cpu/avx512/math_avx512.h"

#define COL_WIDTH 16

typedef __m512 col;

static inline col col_load(const float *p, size_t left)
{
    return _mm512_maskz_loadu_ps(tail16(left), p);
}

static inline void col_store(float *p, size_t left, col v)
{
    _mm512_mask_storeu_ps(p, tail16(left), v);
}

static inline col col_loadu(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void col_storeu(float *p, col v)
{
    _mm512_storeu_ps(p, v);
}

static inline col col_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline col col_zero(void)
{
    return _mm512_setzero_ps();
}

static inline col col_mul(col a, col b)
{
    return _mm512_mul_ps(a, b);
}

static inline col col_add(col a, col b)
{
    return _mm512_add_ps(a, b);
}

static inline col col_sub(col a, col b)
{
    return _mm512_sub_ps(a, b);
}

static inline col col_fma(col a, col b, col c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline col col_exp(col x)
{
    return exp16(x);
}

#include "backends/cpu/columns.h"
