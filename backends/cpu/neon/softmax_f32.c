/* Softmax of a row. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(softmax, f32, neon);

static float most(const float *x, size_t n)
{
    const float32x4_t least = vdupq_n_f32(-INFINITY);
    float32x4_t m = least;

    for (size_t i = 0; i < n; i += 4)
        m = more4(vbslq_f32(tail4(n - i), load4(x + i, n - i), least), m);
    return vmaxvq_f32(m);
}

void softmax_f32_neon(const float *x, float *y, size_t n)
{
    float32x4_t m = vdupq_n_f32(most(x, n));
    float32x4_t p[4], sum;

    for (int v = 0; v < 4; v++)
        p[v] = vdupq_n_f32(0.0f);
    for (size_t i = 0; i < n; i += 4) {
        float32x4_t e = exp4(vsubq_f32(load4(x + i, n - i), m));

        store4(y + i, n - i, e);
        e = vbslq_f32(tail4(n - i), e, vdupq_n_f32(0.0f));
        p[i / 4 % 4] = vaddq_f32(p[i / 4 % 4], e);
    }
    sum = vdupq_n_f32(tree16(p));
    for (size_t i = 0; i < n; i += 4)
        store4(y + i, n - i, vdivq_f32(load4(y + i, n - i), sum));
}
