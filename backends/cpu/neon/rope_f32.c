/* Rotation of neighbours: two pairs at once. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(rope, f32, neon);

void rope_f32_neon(float *x, const float *cs, size_t n_dims)
{
    for (size_t i = 0; i + 1 < n_dims; i += 4) {
        size_t left = (n_dims - i) & ~(size_t)1;
        float32x4_t v = load4(x + i, left), t = load4(cs + i, left);
        float32x4_t c = vtrn1q_f32(t, t), s = vtrn2q_f32(t, t);
        float32x4_t a = vtrn1q_f32(v, v), b = vtrn2q_f32(v, v);
        /* Even lanes fma(a, c, -(b s)), odd lanes fma(a, s, b c). */
        float32x4_t even = vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c);
        float32x4_t odd = vfmaq_f32(vmulq_f32(b, c), a, s);

        store4(x + i, left, vtrn1q_f32(even, vextq_f32(odd, odd, 1)));
    }
}
