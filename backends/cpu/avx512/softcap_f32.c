/* Soft cap. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(softcap, f32, avx512);

void softcap_f32_avx512(const float *x, float c, float *y, size_t n)
{
    const __m512 cap = _mm512_set1_ps(c);

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 t = tanh16(_mm512_div_ps(_mm512_maskz_loadu_ps(m, x + i), cap));

        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(t, cap));
    }
}
