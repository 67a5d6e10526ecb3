/*
 * q5_1: isum = Σ q * a over 32, |isum| <= 32 * 31 * 127 = 125984; asum = Σ a, |asum| <= 4064.
 * f32 order: shape "offset" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q5_1, scalar);

void matvec_q5_1_scalar(const struct matvec *m)
{
    matvec_offset(m, unpack_q5_1, sizeof(struct block_q5_1));
}
