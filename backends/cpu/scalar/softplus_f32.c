/* ln(1 + e^(x + bias)); the definition of its bits is in math.h. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(softplus, f32, scalar);

void softplus_f32_scalar(const float *x, const float *bias, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = math_softplus(bias ? x[i] + bias[i] : x[i]);
}
