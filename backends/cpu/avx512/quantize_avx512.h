/*
 * quantize_avx512 - 64 floats to 64 bytes, and the largest of them.
 *
 * The rule is act.h's.  Values here are finite: callers give blocks with an
 * infinity or a NaN, and blocks too small for a scale, to the scalar twin.
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/cpu/kernels.h"

/* |x| as integers: the order of floats, NaN on top. */
INLINE __m512i quantize_abs(const float *x)
{
    return _mm512_and_si512(_mm512_loadu_si512(x), _mm512_set1_epi32(0x7fffffff));
}

/* Bytes of 64 floats: inv[i] scales floats 16i … 16i + 15. */
INLINE __m512i quantize_bytes(const float *x, const __m512 inv[4])
{
    __m512i q[4];

    for (size_t i = 0; i < 4; i++)
        q[i] = _mm512_cvtps_epi32(_mm512_mul_ps(_mm512_loadu_ps(x + 16 * i), inv[i]));
    /* Packing works in lanes: dword g of lane l is 4l … 4l + 3 of q[g]. */
    q[0] = _mm512_packs_epi16(_mm512_packs_epi32(q[0], q[1]), _mm512_packs_epi32(q[2], q[3]));
    return lanes_flip(q[0]);
}

/* Sums of sixteen bytes of four vectors of 64, in order. */
INLINE __m512i quantize_sums(const __m512i q[4])
{
    const __m512i ones = _mm512_set1_epi8(1), zero = _mm512_setzero_si512();

    return lanes_flip(
        lanes_sum4(_mm512_dpbusd_epi32(zero, ones, q[0]), _mm512_dpbusd_epi32(zero, ones, q[1]),
                   _mm512_dpbusd_epi32(zero, ones, q[2]), _mm512_dpbusd_epi32(zero, ones, q[3])));
}
