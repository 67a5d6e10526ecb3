/*
 * q4_1: isum = Σ q * a over 32, |isum| <= 32 * 15 * 127 = 60960; asum = Σ a, |asum| <= 4064.
 * f32 order: shape "offset" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q4_1, scalar);

void matvec_q4_1_scalar(const struct matvec *m)
{
    matvec_offset(m, unpack_q4_1, sizeof(struct block_q4_1));
}
