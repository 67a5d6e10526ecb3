/* Soft cap. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(softcap, f32, neon);

void softcap_f32_neon(const float *x, float c, float *y, size_t n)
{
    const float32x4_t cap = vdupq_n_f32(c);

    for (size_t i = 0; i < n; i += 4)
        store4(y + i, n - i, vmulq_f32(tanh4(vdivq_f32(load4(x + i, n - i), cap)), cap));
}
