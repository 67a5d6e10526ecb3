/* A row times a number. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(scale, f32, avx512);

void scale_f32_avx512(const float *x, float s, float *y, size_t n)
{
    __m512 factor = _mm512_set1_ps(s);

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);

        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(_mm512_maskz_loadu_ps(m, x + i), factor));
    }
}
