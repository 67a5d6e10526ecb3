/* sigmoid(gate) * up. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(sigmoid_mul, f32, neon);

void sigmoid_mul_f32_neon(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4)
        store4(y + i, n - i, vmulq_f32(sigmoid4(load4(gate + i, n - i)), load4(up + i, n - i)));
}
