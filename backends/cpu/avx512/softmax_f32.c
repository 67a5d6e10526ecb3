/* Softmax of a row. */
#include <math.h>

#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(softmax, f32, avx512);

void softmax_f32_avx512(const float *x, float *y, size_t n)
{
    __m512 p = _mm512_setzero_ps();
    __m512 m = _mm512_set1_ps(-INFINITY);

    /* max_ps(x, m) is m where x is NaN, as the twin's comparison. */
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 k = tail16(n - i);

        m = _mm512_mask_max_ps(m, k, _mm512_maskz_loadu_ps(k, x + i), m);
    }
    m = _mm512_set1_ps(_mm512_reduce_max_ps(m));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 k = tail16(n - i);
        __m512 e = exp16(_mm512_sub_ps(_mm512_maskz_loadu_ps(k, x + i), m));

        _mm512_mask_storeu_ps(y + i, k, e);
        p = _mm512_mask_add_ps(p, k, p, e);
    }
    p = _mm512_set1_ps(tree16(p));
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 k = tail16(n - i);

        _mm512_mask_storeu_ps(y + i, k, _mm512_div_ps(_mm512_maskz_loadu_ps(k, y + i), p));
    }
}
