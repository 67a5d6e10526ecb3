/*
 * iq2_s: isum = Σ (2s + 1) Σ ±grid * a, s per 16, |isum| <= 256 * 31 * 43 * 127 = 43.3 M;
 * d_w = d / 8.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq2_s, scalar);

void matvec_iq2_s_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_iq2_s, sizeof(struct block_iq2_s));
}
