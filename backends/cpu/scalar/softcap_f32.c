/* Soft cap, tanh(x / c) * c; the definition of its bits is in math.h. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(softcap, f32, scalar);

void softcap_f32_scalar(const float *x, float c, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = math_tanh(x[i] / c) * c;
}
