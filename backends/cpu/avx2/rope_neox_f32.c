/* Rotation of halves: eight pairs at once. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(rope_neox, f32, avx2);

/* Even floats of lo then of hi, within 128-bit lanes and then put in order. */
static inline __m256 in_order(__m256 v)
{
    return _mm256_castpd_ps(_mm256_permute4x64_pd(_mm256_castps_pd(v), 0xd8));
}

void rope_neox_f32_avx2(float *x, const float *cs, size_t n_dims)
{
    size_t half = n_dims / 2;

    for (size_t i = 0; i < half; i += 8) {
        size_t left = half - i;
        __m256 lo = load8(cs + 2 * i, 2 * left);
        __m256 hi = load8(cs + 2 * i + 8, left8(2 * left, 8));
        __m256 c = in_order(_mm256_shuffle_ps(lo, hi, 0x88));
        __m256 s = in_order(_mm256_shuffle_ps(lo, hi, 0xdd));
        __m256 a = load8(x + i, left), b = load8(x + half + i, left);

        store8(x + i, left, _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s)));
        store8(x + half + i, left, _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c)));
    }
}
