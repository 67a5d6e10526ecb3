/*
 * tq2_0: isum = Σ (q - 1) * a over 256, |isum| <= 256 * 2 * 127 = 65024 (all scales are 1).
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, tq2_0, scalar);

void matvec_tq2_0_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_tq2_0, sizeof(struct block_tq2_0));
}
