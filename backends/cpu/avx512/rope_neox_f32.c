/* Rotation of halves: sixteen pairs at once. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(rope_neox, f32, avx512);

void rope_neox_f32_avx512(float *x, const float *cs, size_t n_dims)
{
    const __m512i evens =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odds = _mm512_add_epi32(evens, _mm512_set1_epi32(1));
    size_t half = n_dims / 2;

    for (size_t i = 0; i < half; i += 16) {
        size_t left = half - i;
        __mmask16 m = tail16(left);
        __m512 lo = _mm512_maskz_loadu_ps(tail16(2 * left), cs + 2 * i);
        __m512 hi = _mm512_maskz_loadu_ps(left > 8 ? tail16(2 * left - 16) : 0, cs + 2 * i + 16);
        __m512 c = _mm512_permutex2var_ps(lo, evens, hi);
        __m512 s = _mm512_permutex2var_ps(lo, odds, hi);
        __m512 a = _mm512_maskz_loadu_ps(m, x + i);
        __m512 b = _mm512_maskz_loadu_ps(m, x + half + i);

        _mm512_mask_storeu_ps(x + i, m, _mm512_fmsub_ps(a, c, _mm512_mul_ps(b, s)));
        _mm512_mask_storeu_ps(x + half + i, m, _mm512_fmadd_ps(a, s, _mm512_mul_ps(b, c)));
    }
}
