/* A row of a short convolution. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(conv, f32, neon);

void conv_f32_neon(const struct conv *c)
{
    for (size_t i = 0; i < c->n; i += 4) {
        size_t left = c->n - i;
        float32x4_t sum = c->bias ? load4(c->bias + i, left) : vdupq_n_f32(0.0f);

        for (size_t j = 0; j < c->taps; j++)
            sum = vfmaq_f32(sum, load4(c->w + j * c->w_stride + i, left), load4(c->x[j] + i, left));
        store4(c->y + i, left, c->silu ? silu4(sum) : sum);
    }
}
