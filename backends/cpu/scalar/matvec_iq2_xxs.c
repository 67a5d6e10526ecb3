/*
 * iq2_xxs: isum = Σ (2s + 1) Σ ±grid * a, s per 32, |isum| <= 256 * 31 * 43 * 127 = 43.3 M;
 * d_w = d / 8.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq2_xxs, scalar);

void matvec_iq2_xxs_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_iq2_xxs, sizeof(struct block_iq2_xxs));
}
