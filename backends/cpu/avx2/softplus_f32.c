/* ln(1 + e^(x + bias)). */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(softplus, f32, avx2);

void softplus_f32_avx2(const float *x, const float *bias, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        __m256 v = load8(x + i, n - i);

        store8(y + i, n - i, softplus8(bias ? _mm256_add_ps(v, load8(bias + i, n - i)) : v));
    }
}
