/* ln(1 + e^(x + bias)). */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(softplus, f32, avx512);

void softplus_f32_avx512(const float *x, const float *bias, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 v = _mm512_maskz_loadu_ps(m, x + i);

        if (bias)
            v = _mm512_add_ps(v, _mm512_maskz_loadu_ps(m, bias + i));
        _mm512_mask_storeu_ps(y + i, m, softplus16(v));
    }
}
