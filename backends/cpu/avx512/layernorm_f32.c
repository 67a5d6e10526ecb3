/* Layer norm. */
#include <math.h>

#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(layernorm, f32, avx512);

void layernorm_f32_avx512(const float *x, const float *w, const float *b, float eps, float *y,
                          size_t n)
{
    __m512 p = _mm512_setzero_ps(), q = _mm512_setzero_ps();
    __m512 mean, r;

    for (size_t i = 0; i < n; i += 16)
        p = _mm512_add_ps(p, _mm512_maskz_loadu_ps(tail16(n - i), x + i));
    mean = _mm512_set1_ps(tree16(p) / (float)n);
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 d = _mm512_maskz_sub_ps(m, _mm512_maskz_loadu_ps(m, x + i), mean);

        q = _mm512_fmadd_ps(d, d, q);
    }
    r = _mm512_set1_ps(1.0f / sqrtf(tree16(q) / (float)n + eps));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 v = _mm512_mul_ps(_mm512_sub_ps(_mm512_maskz_loadu_ps(m, x + i), mean), r);

        if (w)
            v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i));
        if (b)
            v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, b + i));
        _mm512_mask_storeu_ps(y + i, m, v);
    }
}
