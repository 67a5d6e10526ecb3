/* gelu(gate) * up, or gelu(gate). */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(gelu_mul, f32, avx2);

void gelu_mul_f32_avx2(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8) {
        __m256 g = gelu8(load8(gate + i, n - i));

        store8(y + i, n - i, up ? _mm256_mul_ps(g, load8(up + i, n - i)) : g);
    }
}
