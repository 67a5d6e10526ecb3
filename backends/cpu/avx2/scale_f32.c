/* A row times a number. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(scale, f32, avx2);

void scale_f32_avx2(const float *x, float s, float *y, size_t n)
{
    __m256 factor = _mm256_set1_ps(s);

    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, _mm256_mul_ps(load8(x + i, n - i), factor));
}
