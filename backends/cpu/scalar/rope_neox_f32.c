/* Rotation of the pairs (i, i + n_dims / 2) by the table's angles. */
#include <math.h>

#include "backends/cpu/kernels.h"

KERNEL(rope_neox, f32, scalar);

void rope_neox_f32_scalar(float *x, const float *cs, size_t n_dims)
{
    size_t half = n_dims / 2;

    for (size_t i = 0; i < half; i++) {
        float a = x[i], b = x[i + half];

        x[i] = fmaf(a, cs[2 * i], -(b * cs[2 * i + 1]));
        x[i + half] = fmaf(a, cs[2 * i + 1], b * cs[2 * i]);
    }
}
