/* e^(a b). */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(exp_mul, f32, avx2);

void exp_mul_f32_avx2(const float *a, const float *b, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, exp8(_mm256_mul_ps(load8(a + i, n - i), load8(b + i, n - i))));
}
