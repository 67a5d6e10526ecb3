/*
 * q2_k: isum = Σ sc_j Σ q * a over sixteen 16s, |isum| <= 256 * 15 * 3 * 127 = 1.5 M;
 * msum = Σ m_j * asum_j with the sums of 16, |msum| <= 256 * 15 * 127 = 0.5 M.
 * f32 order: shape "minima" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q2_k, scalar);

void matvec_q2_k_scalar(const struct matvec *m)
{
    matvec_minima(m, unpack_q2_k, sizeof(struct block_q2_k));
}
