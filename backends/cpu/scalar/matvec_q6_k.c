/*
 * q6_k: isum = Σ sc_j Σ (q - 32) * a over sixteen 16s, |isum| <= 256 * 128 * 32 * 127 = 133.2 M.
 * f32 order: shape "scales" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q6_k, scalar);

void matvec_q6_k_scalar(const struct matvec *m)
{
    matvec_scales(m, unpack_q6_k, sizeof(struct block_q6_k));
}
