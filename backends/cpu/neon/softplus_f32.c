/* ln(1 + e^(x + bias)). */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(softplus, f32, neon);

void softplus_f32_neon(const float *x, const float *bias, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t v = load4(x + i, n - i);

        store4(y + i, n - i, softplus4(bias ? vaddq_f32(v, load4(bias + i, n - i)) : v));
    }
}
