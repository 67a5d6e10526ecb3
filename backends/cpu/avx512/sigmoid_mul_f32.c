/* sigmoid(gate) * up. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(sigmoid_mul, f32, avx512);

void sigmoid_mul_f32_avx512(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m512 g = sigmoid16(_mm512_maskz_loadu_ps(m, gate + i));

        _mm512_mask_storeu_ps(y + i, m, _mm512_mul_ps(g, _mm512_maskz_loadu_ps(m, up + i)));
    }
}
