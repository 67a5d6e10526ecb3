/* Root mean square norm. */
#include <math.h>

#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(rmsnorm, f32, avx512);

void rmsnorm_f32_avx512(const float *x, const float *w, float eps, float *y, size_t n)
{
    __m512 p = _mm512_setzero_ps();
    __m512 r;

    for (size_t i = 0; i < n; i += 16) {
        __m512 v = _mm512_maskz_loadu_ps(tail16(n - i), x + i);

        p = _mm512_fmadd_ps(v, v, p);
    }
    r = _mm512_set1_ps(1.0f / sqrtf(tree16(p) / (float)n + eps));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), r);

        if (w)
            v = _mm512_mul_ps(v, _mm512_maskz_loadu_ps(m, w + i));
        _mm512_mask_storeu_ps(y + i, m, v);
    }
}
