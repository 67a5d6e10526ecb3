/*
 * lanes_avx512 - the shuffles that the AVX-512 matrix kernels share.
 *
 * A zmm is four lanes of 16 bytes; "unpack" instructions work inside a lane,
 * so sums and transpositions of 4 x 4 dwords happen in all four lanes at once
 * and only the last step crosses them.
 */
#pragma once

#include <immintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "backends/formats/half.h"

#define INLINE static inline __attribute__((always_inline))

/* Every lane: element i = sum of the four elements of x[i] in that lane. */
INLINE __m512i lanes_sum4(__m512i x0, __m512i x1, __m512i x2, __m512i x3)
{
    __m512i a = _mm512_add_epi32(_mm512_unpacklo_epi32(x0, x1), _mm512_unpackhi_epi32(x0, x1));
    __m512i b = _mm512_add_epi32(_mm512_unpacklo_epi32(x2, x3), _mm512_unpackhi_epi32(x2, x3));

    return _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* Lane g of the result = sum of the four lanes of x[g]. */
INLINE __m512i lanes_sum_across(__m512i x0, __m512i x1, __m512i x2, __m512i x3)
{
    __m512i a =
        _mm512_add_epi32(_mm512_shuffle_i64x2(x0, x1, 0x88), _mm512_shuffle_i64x2(x0, x1, 0xdd));
    __m512i b =
        _mm512_add_epi32(_mm512_shuffle_i64x2(x2, x3, 0x88), _mm512_shuffle_i64x2(x2, x3, 0xdd));

    return _mm512_add_epi32(_mm512_shuffle_i64x2(a, b, 0x88), _mm512_shuffle_i64x2(a, b, 0xdd));
}

/* Element 4 * lane + g ↔ element 4 * g + lane. */
INLINE __m512i lanes_flip(__m512i x)
{
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);

    return _mm512_permutexvar_epi32(order, x);
}

/* Four runs of 16 bytes side by side. */
INLINE __m512i lanes_load(const void *a, const void *b, const void *c, const void *d)
{
    __m512i z = _mm512_castsi128_si512(_mm_loadu_si128((const __m128i *)a));

    z = _mm512_inserti32x4(z, _mm_loadu_si128((const __m128i *)b), 1);
    z = _mm512_inserti32x4(z, _mm_loadu_si128((const __m128i *)c), 2);
    return _mm512_inserti32x4(z, _mm_loadu_si128((const __m128i *)d), 3);
}

/* In every lane the 4 x 4 dwords x[row][k] become x[k][row]. */
INLINE void lanes_transpose4(__m512i x[4])
{
    __m512i a = _mm512_unpacklo_epi32(x[0], x[1]), b = _mm512_unpackhi_epi32(x[0], x[1]);
    __m512i c = _mm512_unpacklo_epi32(x[2], x[3]), d = _mm512_unpackhi_epi32(x[2], x[3]);

    x[0] = _mm512_unpacklo_epi64(a, c);
    x[1] = _mm512_unpackhi_epi64(a, c);
    x[2] = _mm512_unpacklo_epi64(b, d);
    x[3] = _mm512_unpackhi_epi64(b, d);
}

/* 16 bytes of each of 16 rows, stride apart → x[k]: dword k of all rows, in order. */
INLINE void lanes_transpose16(const void *at, size_t stride, __m512i x[4])
{
    const char *p = at;

    for (size_t g = 0; g < 4; g++)
        x[g] = lanes_load(p + g * stride, p + (g + 4) * stride, p + (g + 8) * stride,
                          p + (g + 12) * stride);
    lanes_transpose4(x);
}

INLINE int lanes_load16(const uint8_t *p)
{
    uint16_t x;

    memcpy(&x, p, sizeof(x));
    return x;
}

INLINE int lanes_load32(const uint8_t *p)
{
    int x;

    memcpy(&x, p, sizeof(x));
    return x;
}

/* 16 bits at p, p + stride, … of eight places; inserted one by one, never through memory. */
INLINE __m128i lanes_halves8(const uint8_t *p, size_t stride)
{
    __m128i x = _mm_cvtsi32_si128(lanes_load16(p));

    x = _mm_insert_epi16(x, lanes_load16(p + stride), 1);
    x = _mm_insert_epi16(x, lanes_load16(p + 2 * stride), 2);
    x = _mm_insert_epi16(x, lanes_load16(p + 3 * stride), 3);
    x = _mm_insert_epi16(x, lanes_load16(p + 4 * stride), 4);
    x = _mm_insert_epi16(x, lanes_load16(p + 5 * stride), 5);
    x = _mm_insert_epi16(x, lanes_load16(p + 6 * stride), 6);
    return _mm_insert_epi16(x, lanes_load16(p + 7 * stride), 7);
}

INLINE __m128i lanes_dwords4(const uint8_t *p, size_t stride)
{
    __m128i x = _mm_cvtsi32_si128(lanes_load32(p));

    x = _mm_insert_epi32(x, lanes_load32(p + stride), 1);
    x = _mm_insert_epi32(x, lanes_load32(p + 2 * stride), 2);
    return _mm_insert_epi32(x, lanes_load32(p + 3 * stride), 3);
}

/* 32 bits of sixteen places. */
INLINE __m512i lanes_dwords(const uint8_t *p, size_t stride)
{
    __m512i x = _mm512_castsi128_si512(lanes_dwords4(p, stride));

    x = _mm512_inserti32x4(x, lanes_dwords4(p + 4 * stride, stride), 1);
    x = _mm512_inserti32x4(x, lanes_dwords4(p + 8 * stride, stride), 2);
    return _mm512_inserti32x4(x, lanes_dwords4(p + 12 * stride, stride), 3);
}

/* Sixteen f16 at stride bytes. */
INLINE __m512 lanes_f16(const uint8_t *p, size_t stride)
{
    return _mm512_cvtph_ps(
        _mm256_set_m128i(lanes_halves8(p + 8 * stride, stride), lanes_halves8(p, stride)));
}

/* ue4m3_half_to_f32() of sixteen codes: the exponent moved up by a product, which minds subnormals. */
INLINE __m512 lanes_ue4m3(__m128i codes)
{
    __m512i x = _mm512_cvtepu8_epi32(codes);
    __mmask16 number = _mm512_cmpneq_epi32_mask(x, _mm512_set1_epi32(0x7f));

    x = _mm512_slli_epi32(_mm512_and_si512(x, _mm512_set1_epi32(0x7f)), 20);
    return _mm512_maskz_mul_ps(number, _mm512_castsi512_ps(x), _mm512_set1_ps(0x1p119f));
}

/* The tree of kernels_tree16(). */
INLINE float lanes_tree16(__m512 p)
{
    __m256 a = _mm256_add_ps(_mm512_castps512_ps256(p), _mm512_extractf32x8_ps(p, 1));
    __m128 b = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));

    b = _mm_add_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_add_ss(b, _mm_movehdup_ps(b)));
}

/* Bits of the first n of 16 lanes. */
INLINE __mmask16 lanes_mask(size_t n)
{
    return n >= 16 ? 0xffff : (__mmask16)((1u << n) - 1);
}
