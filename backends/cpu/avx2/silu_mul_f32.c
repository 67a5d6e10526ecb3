/* silu(gate) * up. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(silu_mul, f32, avx2);

void silu_mul_f32_avx2(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, _mm256_mul_ps(silu8(load8(gate + i, n - i)), load8(up + i, n - i)));
}
