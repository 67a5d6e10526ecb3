/*
 * iq1_s: isum = Σ (2s + 1) Σ (8 * grid ± 1) * a, |isum| <= 256 * 15 * 9 * 127 = 4.4 M; d_w = d / 8.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq1_s, scalar);

void matvec_iq1_s_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_iq1_s, sizeof(struct block_iq1_s));
}
