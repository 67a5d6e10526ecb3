/* A row of a short convolution. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(conv, f32, avx2);

void conv_f32_avx2(const struct conv *c)
{
    for (size_t i = 0; i < c->n; i += 8) {
        size_t left = c->n - i;
        __m256 sum = c->bias ? load8(c->bias + i, left) : _mm256_setzero_ps();

        for (size_t j = 0; j < c->taps; j++)
            sum = _mm256_fmadd_ps(load8(c->w + j * c->w_stride + i, left), load8(c->x[j] + i, left),
                                  sum);
        store8(c->y + i, left, c->silu ? silu8(sum) : sum);
    }
}
