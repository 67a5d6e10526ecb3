/* Clamped SwiGLU. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(clamped_mul, f32, neon);

void clamped_mul_f32_neon(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t u = vaddq_f32(clamp4(load4(up + i, n - i)), vdupq_n_f32(1.0f));

        store4(y + i, n - i, vmulq_f32(clamped4(load4(gate + i, n - i)), u));
    }
}
