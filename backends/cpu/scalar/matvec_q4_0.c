/*
 * q4_0: isum = Σ (q - 8) * a over 32, |isum| <= 32 * 8 * 127 = 32512.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q4_0, scalar);

void matvec_q4_0_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_q4_0, 32, sizeof(struct block_q4_0));
}
