/*
 * lanes_avx2 - the shuffles that the AVX2 matrix kernels share.
 *
 * A ymm is two lanes of 16 bytes; "unpack" instructions work inside a lane,
 * so sums and transpositions of 4 x 4 dwords happen in both at once.
 */
#pragma once

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backends/formats/half.h"

#define INLINE static inline __attribute__((always_inline))

INLINE __m256i load256(const void *p)
{
    return _mm256_loadu_si256((const __m256i *)p);
}

INLINE __m128i load128(const void *p)
{
    return _mm_loadu_si128((const __m128i *)p);
}

/* Two runs of 16 bytes side by side. */
INLINE __m256i lanes_load(const void *a, const void *b)
{
    return _mm256_inserti128_si256(_mm256_castsi128_si256(load128(a)), load128(b), 1);
}

/* Every lane: element i = sum of the four elements of x[i] in that lane. */
INLINE __m256i lanes_sum4(const __m256i x[4])
{
    __m256i a =
        _mm256_add_epi32(_mm256_unpacklo_epi32(x[0], x[1]), _mm256_unpackhi_epi32(x[0], x[1]));
    __m256i b =
        _mm256_add_epi32(_mm256_unpacklo_epi32(x[2], x[3]), _mm256_unpackhi_epi32(x[2], x[3]));

    return _mm256_add_epi32(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}

/* Element i = sum of the eight elements of x[i]. */
INLINE __m256i lanes_sum8(const __m256i x[8])
{
    __m256i a = lanes_sum4(x), b = lanes_sum4(x + 4);

    return _mm256_add_epi32(_mm256_permute2x128_si256(a, b, 0x20),
                            _mm256_permute2x128_si256(a, b, 0x31));
}

/* In every lane the 4 x 4 dwords x[row][k] become x[k][row]. */
INLINE void lanes_transpose4(__m256i x[4])
{
    __m256i a = _mm256_unpacklo_epi32(x[0], x[1]), b = _mm256_unpackhi_epi32(x[0], x[1]);
    __m256i c = _mm256_unpacklo_epi32(x[2], x[3]), d = _mm256_unpackhi_epi32(x[2], x[3]);

    x[0] = _mm256_unpacklo_epi64(a, c);
    x[1] = _mm256_unpackhi_epi64(a, c);
    x[2] = _mm256_unpacklo_epi64(b, d);
    x[3] = _mm256_unpackhi_epi64(b, d);
}

/* 16 bytes of each of 8 rows, stride apart → x[k]: dword k of all rows, in order. */
INLINE void lanes_transpose8(const void *at, size_t stride, __m256i x[4])
{
    const char *p = at;

    for (size_t g = 0; g < 4; g++)
        x[g] = lanes_load(p + g * stride, p + (g + 4) * stride);
    lanes_transpose4(x);
}

INLINE int lanes_load16(const uint8_t *p)
{
    uint16_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

INLINE float half_at(const uint8_t *p)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(lanes_load16(p))));
}

/* Eight f16 at p, p + stride, …; inserted one by one, never through memory. */
INLINE __m256 lanes_f16(const uint8_t *p, size_t stride)
{
    __m128i x = _mm_cvtsi32_si128(lanes_load16(p));

    x = _mm_insert_epi16(x, lanes_load16(p + stride), 1);
    x = _mm_insert_epi16(x, lanes_load16(p + 2 * stride), 2);
    x = _mm_insert_epi16(x, lanes_load16(p + 3 * stride), 3);
    x = _mm_insert_epi16(x, lanes_load16(p + 4 * stride), 4);
    x = _mm_insert_epi16(x, lanes_load16(p + 5 * stride), 5);
    x = _mm_insert_epi16(x, lanes_load16(p + 6 * stride), 6);
    x = _mm_insert_epi16(x, lanes_load16(p + 7 * stride), 7);
    return _mm256_cvtph_ps(x);
}

/* ue4m3_half_to_f32() of eight codes: the exponent moved up by a product, which minds subnormals. */
INLINE __m256 lanes_ue4m3(__m128i codes)
{
    const __m256i most = _mm256_set1_epi32(0x7f);
    __m256i x = _mm256_cvtepu8_epi32(codes);
    __m256i is_nan = _mm256_cmpeq_epi32(x, most);

    x = _mm256_slli_epi32(_mm256_andnot_si256(is_nan, _mm256_and_si256(x, most)), 20);
    return _mm256_mul_ps(_mm256_castsi256_ps(x), _mm256_set1_ps(0x1p119f));
}

/* The tree of kernels_tree16(); lo holds partial sums 0 … 7, hi 8 … 15. */
INLINE float lanes_tree16(__m256 lo, __m256 hi)
{
    __m256 a = _mm256_add_ps(lo, hi);
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* All bits of the first n of 8 lanes. */
INLINE __m256i lanes_mask(size_t n)
{
    const __m256i index = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n > 8 ? 8 : (int)n), index);
}
