/* e^(a b). */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(exp_mul, f32, avx512);

void exp_mul_f32_avx512(const float *a, const float *b, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 v = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, a + i), _mm512_maskz_loadu_ps(m, b + i));

        _mm512_mask_storeu_ps(y + i, m, exp16(v));
    }
}
