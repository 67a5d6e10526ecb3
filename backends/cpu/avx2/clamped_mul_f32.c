/* Clamped SwiGLU. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(clamped_mul, f32, avx2);

void clamped_mul_f32_avx2(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        __m256 u = _mm256_add_ps(clamp8(load8(up + i, n - i)), _mm256_set1_ps(1.0f));

        store8(y + i, n - i, _mm256_mul_ps(clamped8(load8(gate + i, n - i)), u));
    }
}
