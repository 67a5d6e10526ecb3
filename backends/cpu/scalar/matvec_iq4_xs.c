/*
 * iq4_xs: isum = Σ (ls - 32) Σ value * a over eight 32s, |isum| <= 256 * 32 * 127 * 127 = 132.1 M.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq4_xs, scalar);

void matvec_iq4_xs_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_iq4_xs, sizeof(struct block_iq4_xs));
}
