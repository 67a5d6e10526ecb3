/* A row times a number. */
#include "backends/cpu/kernels.h"

KERNEL(scale, f32, scalar);

void scale_f32_scalar(const float *x, float s, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = x[i] * s;
}
