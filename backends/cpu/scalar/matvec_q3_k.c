/*
 * q3_k: isum = Σ (sc_j - 32) Σ (q - 4) * a over sixteen 16s, |isum| <= 256 * 32 * 4 * 127 = 4.2 M.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q3_k, scalar);

void matvec_q3_k_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_q3_k, sizeof(struct block_q3_k));
}
