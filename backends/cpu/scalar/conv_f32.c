/* A row of a short convolution; the definition of its bits. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(conv, f32, scalar);

void conv_f32_scalar(const struct conv *c)
{
    for (size_t i = 0; i < c->n; i++) {
        float sum = c->bias ? c->bias[i] : 0.0f;

        for (size_t j = 0; j < c->taps; j++)
            sum = fmaf(c->w[j * c->w_stride + i], c->x[j][i], sum);
        c->y[i] = c->silu ? math_silu(sum) : sum;
    }
}
