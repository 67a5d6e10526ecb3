/* gelu(gate) * up, or gelu(gate). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(gelu_mul, f32, neon);

void gelu_mul_f32_neon(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t g = gelu4(load4(gate + i, n - i));

        store4(y + i, n - i, up ? vmulq_f32(g, load4(up + i, n - i)) : g);
    }
}
