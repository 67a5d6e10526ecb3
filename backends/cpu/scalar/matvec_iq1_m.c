/*
 * iq1_m: isum = Σ (2s + 1) Σ (8 * grid ± 1) * a, a shift per 8 weights;
 * |isum| <= 256 * 15 * 9 * 127 = 4.4 M; d_w = d / 8.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq1_m, scalar);

void matvec_iq1_m_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_iq1_m, sizeof(struct block_iq1_m));
}
