/*
 * q5_k: isum = Σ sc_j Σ q * a over eight 32s, |isum| <= 256 * 63 * 31 * 127 = 63.5 M;
 * msum = Σ m_j * asum_j, |msum| <= 256 * 63 * 127 = 2.1 M.
 * f32 order: shape "minima" of matvec_scalar.h, one fma per 256 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q5_k, scalar);

void matvec_q5_k_scalar(const struct matvec *m)
{
    matvec_minima(m, unpack_q5_k, sizeof(struct block_q5_k));
}
