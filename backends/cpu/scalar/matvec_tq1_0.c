/*
 * tq1_0: isum = Σ (t - 1) * a over 256, |isum| <= 32512 (all scales are 1).
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, tq1_0, scalar);

void matvec_tq1_0_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_tq1_0, sizeof(struct block_tq1_0));
}
