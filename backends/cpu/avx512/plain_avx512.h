/*
 * plain_avx512 - f32, f16 and bf16 weights: sixteen lanes are the sixteen
 * partial sums of kernels.h, one fma each per 16 weights, then the tree.
 *
 * A matvec takes two rows at a time, which hides the latency of fma and keeps
 * the reads in two streams; a gemm four rows x six columns.
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/cpu/kernels.h"

#define PLAIN_AHEAD 6144

/* Sixteen weights from p on as f32; with mask only those lanes are read. */
struct plain {
    size_t bytes; /* of one weight */
    __m512 (*load)(const uint8_t *p);
    __m512 (*load_some)(__mmask16 mask, const uint8_t *p);
};

INLINE __m512 load_f32(const uint8_t *p)
{
    return _mm512_loadu_ps(p);
}

INLINE __m512 load_some_f32(__mmask16 mask, const uint8_t *p)
{
    return _mm512_maskz_loadu_ps(mask, p);
}

INLINE __m512 load_f16(const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}

INLINE __m512 load_some_f16(__mmask16 mask, const uint8_t *p)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, p));
}

INLINE __m512 wide_bf16(__m256i x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
}

INLINE __m512 load_bf16(const uint8_t *p)
{
    return wide_bf16(_mm256_loadu_si256((const __m256i *)p));
}

INLINE __m512 load_some_bf16(__mmask16 mask, const uint8_t *p)
{
    return wide_bf16(_mm256_maskz_loadu_epi16(mask, p));
}

static const struct plain plain_f32 = {4, load_f32, load_some_f32};
static const struct plain plain_f16 = {2, load_f16, load_some_f16};
static const struct plain plain_bf16 = {2, load_bf16, load_some_bf16};

/* Partial sums of rows x cols products over n weights. */
INLINE void plain_block(const struct plain *f, const uint8_t *w, size_t row_bytes, size_t rows,
                        const char *act, size_t act_stride, size_t cols, size_t n, bool prefetch,
                        __m512 acc[])
{
    size_t k = 0;

    for (size_t i = 0; i < rows * cols; i++)
        acc[i] = _mm512_setzero_ps();
    for (; k + 16 <= n; k += 16) {
        __m512 x[8];

#pragma GCC unroll 8
        for (size_t c = 0; c < cols; c++)
            x[c] = _mm512_loadu_ps((const float *)(act + c * act_stride) + k);
#pragma GCC unroll 8
        for (size_t r = 0; r < rows; r++) {
            const uint8_t *at = w + r * row_bytes + k * f->bytes;
            __m512 v = f->load(at);

            if (prefetch && (f->bytes == 4 || k % 32 == 0))
                _mm_prefetch((const void *)((uintptr_t)at + PLAIN_AHEAD), _MM_HINT_T1);
#pragma GCC unroll 8
            for (size_t c = 0; c < cols; c++)
                acc[r * cols + c] = _mm512_fmadd_ps(v, x[c], acc[r * cols + c]);
        }
    }
    if (k < n) {
        __mmask16 mask = lanes_mask(n - k);

        for (size_t r = 0; r < rows; r++) {
            __m512 v = f->load_some(mask, w + r * row_bytes + k * f->bytes);

            for (size_t c = 0; c < cols; c++)
                acc[r * cols + c] = _mm512_mask3_fmadd_ps(
                    v, _mm512_maskz_loadu_ps(mask, (const float *)(act + c * act_stride) + k),
                    acc[r * cols + c], mask);
        }
    }
}

INLINE void plain_matvec_cols(const struct matvec *m, const struct plain *f, size_t cols)
{
    const uint8_t *w = m->w;
    size_t r = 0;

    for (; r + 2 <= m->rows; r += 2) {
        __m512 acc[8];

        plain_block(f, w + r * m->row_bytes, m->row_bytes, 2, m->act, m->act_stride, cols, m->n,
                    true, acc);
        for (size_t c = 0; c < cols; c++) {
            m->y[c * m->y_stride + r] = lanes_tree16(acc[c]);
            m->y[c * m->y_stride + r + 1] = lanes_tree16(acc[cols + c]);
        }
    }
    if (r < m->rows) {
        __m512 acc[4];

        plain_block(f, w + r * m->row_bytes, m->row_bytes, 1, m->act, m->act_stride, cols, m->n,
                    false, acc);
        for (size_t c = 0; c < cols; c++)
            m->y[c * m->y_stride + r] = lanes_tree16(acc[c]);
    }
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

INLINE void plain_tile(const struct gemm *g, const struct plain *f, size_t r, size_t rows, size_t c,
                       size_t cols)
{
    __m512 acc[24];

    plain_block(f, (const uint8_t *)g->w + r * g->row_bytes, g->row_bytes, rows,
                (const char *)g->act + c * g->act_stride, g->act_stride, cols, g->n, false, acc);
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < cols; j++)
            g->y[(c + j) * g->y_stride + r + i] = lanes_tree16(acc[i * cols + j]);
}

INLINE void plain_strip(const struct gemm *g, const struct plain *f, size_t r, size_t rows,
                        size_t c, size_t end)
{
    for (; c + 6 <= end; c += 6)
        plain_tile(g, f, r, rows, c, 6);
    for (; c < end; c++)
        plain_tile(g, f, r, rows, c, 1);
}

/* As many columns as fit in half an L2 while all rows pass; four rows at a time stay in L1. */
INLINE void plain_gemm(const struct gemm *g, const struct plain *f)
{
    size_t fit = ((size_t)512 << 10) / (g->n * sizeof(float)) / 6 * 6;
    size_t step = fit < 6 ? 6 : fit;

    for (size_t c = 0; c < g->cols; c += step) {
        size_t end = c + step < g->cols ? c + step : g->cols;
        size_t r = 0;

        for (; r + 4 <= g->rows; r += 4)
            plain_strip(g, f, r, 4, c, end);
        for (; r < g->rows; r++)
            plain_strip(g, f, r, 1, c, end);
    }
}
