/* sigmoid(gate) * up. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(sigmoid_mul, f32, avx2);

void sigmoid_mul_f32_avx2(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, _mm256_mul_ps(sigmoid8(load8(gate + i, n - i)), load8(up + i, n - i)));
}
