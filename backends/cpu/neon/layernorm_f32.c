/* Layer norm. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(layernorm, f32, neon);

/* x - mean; zero in lanes past n. */
static inline float32x4_t centred4(const float *x, size_t n, float32x4_t mean)
{
    return vbslq_f32(tail4(n), vsubq_f32(load4(x, n), mean), vdupq_n_f32(0.0f));
}

void layernorm_f32_neon(const float *x, const float *w, const float *b, float eps, float *y,
                        size_t n)
{
    float32x4_t p[4], q[4], mean;
    float r;

    for (int v = 0; v < 4; v++)
        p[v] = q[v] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < n; i += 4)
        p[i / 4 % 4] = vaddq_f32(p[i / 4 % 4], load4(x + i, n - i));
    mean = vdupq_n_f32(tree16(p) / (float)n);
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t d = centred4(x + i, n - i, mean);

        q[i / 4 % 4] = vfmaq_f32(q[i / 4 % 4], d, d);
    }
    r = 1.0f / sqrtf(tree16(q) / (float)n + eps);
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t v = vmulq_f32(vsubq_f32(load4(x + i, n - i), mean), vdupq_n_f32(r));

        v = w ? vmulq_f32(v, load4(w + i, n - i)) : v;
        store4(y + i, n - i, b ? vaddq_f32(v, load4(b + i, n - i)) : v);
    }
}
