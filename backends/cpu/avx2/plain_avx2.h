/*
 * plain_avx2 - f32, f16 and bf16 weights: two vectors of eight lanes are the
 * sixteen partial sums of kernels.h, one fma each per 16 weights, then the
 * tree.  A matvec takes two rows at a time, a gemm two rows x three columns.
 */
#pragma once

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/cpu/kernels.h"

#define PLAIN_AHEAD 6144

struct plain {
    size_t bytes;                     /* of one weight */
    __m256 (*load)(const uint8_t *p); /* eight weights as f32 */
    float (*load_one)(const uint8_t *p);
};

INLINE __m256 load_f32(const uint8_t *p)
{
    return _mm256_castsi256_ps(load256(p));
}

INLINE float load_one_f32(const uint8_t *p)
{
    float x;

    memcpy(&x, p, sizeof(x));
    return x;
}

INLINE __m256 load_f16(const uint8_t *p)
{
    return _mm256_cvtph_ps(load128(p));
}

INLINE float load_one_f16(const uint8_t *p)
{
    return half_at(p);
}

INLINE __m256 load_bf16(const uint8_t *p)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load128(p)), 16));
}

INLINE float load_one_bf16(const uint8_t *p)
{
    return bf16_to_f32((uint16_t)lanes_load16(p));
}

static const struct plain plain_f32 = {4, load_f32, load_one_f32};
static const struct plain plain_f16 = {2, load_f16, load_one_f16};
static const struct plain plain_bf16 = {2, load_bf16, load_one_bf16};

/* The last weights, fewer than 16, one by one onto the lanes that they belong to. */
INLINE float plain_rest(const struct plain *f, const uint8_t *w, const float *x, size_t left,
                        __m256 lo, __m256 hi)
{
    float p[16];

    _mm256_storeu_ps(p, lo);
    _mm256_storeu_ps(p + 8, hi);
    for (size_t i = 0; i < left; i++)
        p[i] = __builtin_fmaf(f->load_one(w + i * f->bytes), x[i], p[i]);
    return kernels_tree16(p);
}

/* Products of rows x cols over n weights; y[c * y_stride + r]. */
INLINE void plain_block(const struct plain *f, const uint8_t *w, size_t row_bytes, size_t rows,
                        const char *act, size_t act_stride, size_t cols, size_t n, float *y,
                        size_t y_stride)
{
    __m256 acc[8][2];
    size_t k = 0;

    for (size_t i = 0; i < rows * cols; i++)
        acc[i][0] = acc[i][1] = _mm256_setzero_ps();
    for (; k + 16 <= n; k += 16)
#pragma GCC unroll 2
        for (size_t r = 0; r < rows; r++) {
            const uint8_t *at = w + r * row_bytes + k * f->bytes;
            __m256 lo = f->load(at), hi = f->load(at + 8 * f->bytes);

            _mm_prefetch((const void *)((uintptr_t)at + PLAIN_AHEAD), _MM_HINT_T1);
#pragma GCC unroll 4
            for (size_t c = 0; c < cols; c++) {
                const float *x = (const float *)(act + c * act_stride) + k;
                __m256 *a = acc[r * cols + c];

                a[0] = _mm256_fmadd_ps(lo, _mm256_loadu_ps(x), a[0]);
                a[1] = _mm256_fmadd_ps(hi, _mm256_loadu_ps(x + 8), a[1]);
            }
        }
    for (size_t r = 0; r < rows; r++)
        for (size_t c = 0; c < cols; c++) {
            const __m256 *a = acc[r * cols + c];

            y[c * y_stride + r] =
                k == n ? lanes_tree16(a[0], a[1])
                       : plain_rest(f, w + r * row_bytes + k * f->bytes,
                                    (const float *)(act + c * act_stride) + k, n - k, a[0], a[1]);
        }
}

INLINE void plain_matvec_cols(const struct matvec *m, const struct plain *f, size_t cols)
{
    const uint8_t *w = m->w;
    size_t r = 0;

    for (; r + 2 <= m->rows; r += 2)
        plain_block(f, w + r * m->row_bytes, m->row_bytes, 2, m->act, m->act_stride, cols, m->n,
                    m->y + r, m->y_stride);
    if (r < m->rows)
        plain_block(f, w + r * m->row_bytes, m->row_bytes, 1, m->act, m->act_stride, cols, m->n,
                    m->y + r, m->y_stride);
}

INLINE void plain_matvec(const struct matvec *m, const struct plain *f)
{
    switch (m->cols) {
    case 1: plain_matvec_cols(m, f, 1); break;
    case 2: plain_matvec_cols(m, f, 2); break;
    case 3: plain_matvec_cols(m, f, 3); break;
    default: plain_matvec_cols(m, f, 4); break;
    }
}

INLINE void plain_strip(const struct gemm *g, const struct plain *f, size_t r, size_t rows,
                        size_t c, size_t end)
{
    const uint8_t *w = (const uint8_t *)g->w + r * g->row_bytes;

    for (; c < end; c += 3) {
        size_t cols = end - c < 3 ? end - c : 3;
        const char *act = (const char *)g->act + c * g->act_stride;
        float *y = g->y + c * g->y_stride + r;

        if (cols == 3)
            plain_block(f, w, g->row_bytes, rows, act, g->act_stride, 3, g->n, y, g->y_stride);
        else
            for (size_t i = 0; i < cols; i++)
                plain_block(f, w, g->row_bytes, rows, act + i * g->act_stride, g->act_stride, 1,
                            g->n, y + i * g->y_stride, g->y_stride);
    }
}

/* As many columns as fit in half an L2 while all rows pass; two rows at a time stay in L1. */
INLINE void plain_gemm(const struct gemm *g, const struct plain *f)
{
    size_t fit = ((size_t)256 << 10) / (g->n * sizeof(float)) / 3 * 3;
    size_t step = fit < 3 ? 3 : fit;

    for (size_t c = 0; c < g->cols; c += step) {
        size_t end = c + step < g->cols ? c + step : g->cols;
        size_t r = 0;

        for (; r + 2 <= g->rows; r += 2)
            plain_strip(g, f, r, 2, c, end);
        if (r < g->rows)
            plain_strip(g, f, r, 1, c, end);
    }
}
