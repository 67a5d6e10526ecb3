/* A row of a short convolution. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(conv, f32, avx512);

void conv_f32_avx512(const struct conv *c)
{
    for (size_t i = 0; i < c->n; i += 16) {
        __mmask16 m = tail16(c->n - i);
        __m512 sum = c->bias ? _mm512_maskz_loadu_ps(m, c->bias + i) : _mm512_setzero_ps();

        for (size_t j = 0; j < c->taps; j++)
            sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(m, c->w + j * c->w_stride + i),
                                  _mm512_maskz_loadu_ps(m, c->x[j] + i), sum);
        _mm512_mask_storeu_ps(c->y + i, m, c->silu ? silu16(sum) : sum);
    }
}
