/* Rotation of neighbours (2i, 2i + 1) by the table's angles. */
#include <math.h>

#include "backends/cpu/kernels.h"

KERNEL(rope, f32, scalar);

void rope_f32_scalar(float *x, const float *cs, size_t n_dims)
{
    for (size_t i = 0; i + 1 < n_dims; i += 2) {
        float a = x[i], b = x[i + 1];

        x[i] = fmaf(a, cs[i], -(b * cs[i + 1]));
        x[i + 1] = fmaf(a, cs[i + 1], b * cs[i]);
    }
}
