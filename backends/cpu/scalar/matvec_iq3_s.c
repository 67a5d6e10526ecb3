/*
 * iq3_s: isum = Σ (2s + 1) Σ ±grid * a, s per 32, |isum| <= 256 * 31 * 15 * 127 = 15.1 M.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq3_s, scalar);

void matvec_iq3_s_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_iq3_s, sizeof(struct block_iq3_s));
}
