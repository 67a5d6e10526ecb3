/* e^(a b); the definition of its bits is in math.h. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(exp_mul, f32, scalar);

void exp_mul_f32_scalar(const float *a, const float *b, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = math_exp(a[i] * b[i]);
}
