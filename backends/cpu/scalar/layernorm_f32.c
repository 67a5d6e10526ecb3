/* Layer norm (Ba et al. 2016, arXiv 1607.06450); the definition of its bits. */
#include <math.h>

#include "backends/cpu/kernels.h"

KERNEL(layernorm, f32, scalar);

void layernorm_f32_scalar(const float *x, const float *w, const float *b, float eps, float *y,
                          size_t n)
{
    float p[16] = {0}, q[16] = {0};
    float mean, r;

    for (size_t i = 0; i < n; i++)
        p[i % 16] += x[i];
    mean = kernels_tree16(p) / (float)n;
    for (size_t i = 0; i < n; i++)
        q[i % 16] = fmaf(x[i] - mean, x[i] - mean, q[i % 16]);
    r = 1.0f / sqrtf(kernels_tree16(q) / (float)n + eps);
    for (size_t i = 0; i < n; i++) {
        float v = (x[i] - mean) * r;

        v = w ? v * w[i] : v;
        y[i] = b ? v + b[i] : v;
    }
}
