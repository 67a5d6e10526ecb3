/*
 * q4_k: isum = Σ sc_j Σ q * a over eight 32s, |isum| <= 256 * 63 * 15 * 127 = 30.7 M;
 * msum = Σ m_j * asum_j, |msum| <= 256 * 63 * 127 = 2.1 M.
 * f32 order: shape "minima" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q4_k, scalar);

void matvec_q4_k_scalar(const struct matvec *m)
{
    matvec_minima(m, unpack_q4_k, sizeof(struct block_q4_k));
}
