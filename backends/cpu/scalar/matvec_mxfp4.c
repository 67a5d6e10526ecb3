/*
 * mxfp4: isum = Σ (2 * fp4) * a over 32, |isum| <= 32 * 12 * 127 = 48768; d_w = half of the scale.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, mxfp4, scalar);

void matvec_mxfp4_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_mxfp4, 32, sizeof(struct block_mxfp4));
}
