/* Root mean square norm; the definition of its bits. */
#include <math.h>

#include "backends/cpu/kernels.h"

KERNEL(rmsnorm, f32, scalar);

void rmsnorm_f32_scalar(const float *x, const float *w, float eps, float *y, size_t n)
{
    float p[16] = {0};
    float r;

    for (size_t i = 0; i < n; i++)
        p[i % 16] = fmaf(x[i], x[i], p[i % 16]);
    r = 1.0f / sqrtf(kernels_tree16(p) / (float)n + eps);
    for (size_t i = 0; i < n; i++)
        y[i] = w ? x[i] * r * w[i] : x[i] * r;
}
