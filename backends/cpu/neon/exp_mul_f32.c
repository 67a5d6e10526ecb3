/* e^(a b). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(exp_mul, f32, neon);

void exp_mul_f32_neon(const float *a, const float *b, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        store4(y + i, n - i, exp4(vmulq_f32(load4(a + i, n - i), load4(b + i, n - i))));
}
