/* Rotation of neighbours: four pairs at once. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(rope, f32, avx2);

void rope_f32_avx2(float *x, const float *cs, size_t n_dims)
{
    for (size_t i = 0; i + 1 < n_dims; i += 8) {
        size_t left = (n_dims - i) & ~(size_t)1;
        __m256 v = load8(x + i, left), t = load8(cs + i, left);
        __m256 c = _mm256_moveldup_ps(t), s = _mm256_movehdup_ps(t);
        __m256 a = _mm256_moveldup_ps(v), b = _mm256_movehdup_ps(v);
        /* Even lanes fma(a, c, -(b s)), odd lanes fma(a, s, b c). */
        __m256 even = _mm256_fmsub_ps(a, c, _mm256_mul_ps(b, s));
        __m256 odd = _mm256_fmadd_ps(a, s, _mm256_mul_ps(b, c));

        store8(x + i, left, _mm256_blend_ps(even, odd, 0xaa));
    }
}
