/* A row times a number. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(scale, f32, neon);

void scale_f32_neon(const float *x, float s, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        store4(y + i, n - i, vmulq_f32(load4(x + i, n - i), vdupq_n_f32(s)));
}
