/* Root mean square norm. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(rmsnorm, f32, neon);

void rmsnorm_f32_neon(const float *x, const float *w, float eps, float *y, size_t n)
{
    float32x4_t p[4];
    float r;

    for (int v = 0; v < 4; v++)
        p[v] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < n; i += 16)
        for (size_t v = 0; v < 4; v++) {
            float32x4_t a = load4(x + i + 4 * v, left_of(n, i + 4 * v));

            p[v] = vfmaq_f32(p[v], a, a);
        }
    r = 1.0f / sqrtf(tree16(p) / (float)n + eps);
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t v = vmulq_f32(load4(x + i, n - i), vdupq_n_f32(r));

        store4(y + i, n - i, w ? vmulq_f32(v, load4(w + i, n - i)) : v);
    }
}
