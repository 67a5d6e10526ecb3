/* Rotation of halves: four pairs at once. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(rope_neox, f32, neon);

void rope_neox_f32_neon(float *x, const float *cs, size_t n_dims)
{
    size_t half = n_dims / 2;

    for (size_t i = 0; i < half; i += 4) {
        size_t left = half - i;
        float32x4_t lo = load4(cs + 2 * i, 2 * left);
        float32x4_t hi = load4(cs + 2 * i + 4, left_of(2 * left, 4));
        float32x4_t c = vuzp1q_f32(lo, hi), s = vuzp2q_f32(lo, hi);
        float32x4_t a = load4(x + i, left), b = load4(x + half + i, left);

        store4(x + i, left, vfmaq_f32(vnegq_f32(vmulq_f32(b, s)), a, c));
        store4(x + half + i, left, vfmaq_f32(vmulq_f32(b, c), a, s));
    }
}
