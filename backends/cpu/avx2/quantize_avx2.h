/*
 * quantize_avx2 - 32 floats to 32 bytes, and the largest of them.
 *
 * The rule is act.h's.  Values here are finite: callers give blocks with an
 * infinity or a NaN, and blocks too small for a scale, to the scalar twin.
 */
#pragma once

#include <math.h>

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/cpu/kernels.h"

/* Bits of the largest |x| of n values, n a multiple of 32; as integers: the order of floats, NaN on top. */
INLINE uint32_t quantize_largest(const float *x, size_t n)
{
    const __m256i positive = _mm256_set1_epi32(0x7fffffff);
    __m256i max[4];
    __m128i m;

    for (size_t i = 0; i < 4; i++)
        max[i] = _mm256_and_si256(load256(x + 8 * i), positive);
    for (size_t k = 32; k < n; k += 32)
        for (size_t i = 0; i < 4; i++)
            max[i] = _mm256_max_epu32(max[i], _mm256_and_si256(load256(x + k + 8 * i), positive));
    max[0] = _mm256_max_epu32(_mm256_max_epu32(max[0], max[1]), _mm256_max_epu32(max[2], max[3]));
    m = _mm_max_epu32(_mm256_castsi256_si128(max[0]), _mm256_extracti128_si256(max[0], 1));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(1, 0, 3, 2)));
    m = _mm_max_epu32(m, _mm_shuffle_epi32(m, _MM_SHUFFLE(2, 3, 0, 1)));
    return (uint32_t)_mm_cvtsi128_si32(m);
}

INLINE __m256i quantize_bytes(const float *x, float inv)
{
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i q[4];

    for (size_t i = 0; i < 4; i++)
        q[i] = _mm256_cvtps_epi32(_mm256_mul_ps(_mm256_loadu_ps(x + 8 * i), _mm256_set1_ps(inv)));
    q[0] = _mm256_packs_epi16(_mm256_packs_epi32(q[0], q[1]), _mm256_packs_epi32(q[2], q[3]));
    return _mm256_permutevar8x32_epi32(q[0], order);
}

/* Dword i of each lane: the sum of the lane's sixteen bytes, in four parts. */
INLINE __m256i quantize_parts(__m256i q)
{
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), q), _mm256_set1_epi16(1));
}
