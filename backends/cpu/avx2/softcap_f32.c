/* Soft cap. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(softcap, f32, avx2);

void softcap_f32_avx2(const float *x, float c, float *y, size_t n)
{
    const __m256 cap = _mm256_set1_ps(c);

    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, _mm256_mul_ps(tanh8(_mm256_div_ps(load8(x + i, n - i), cap)), cap));
}
