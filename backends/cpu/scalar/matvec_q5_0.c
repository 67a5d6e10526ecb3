/*
 * q5_0: isum = Σ (q - 16) * a over 32, |isum| <= 32 * 16 * 127 = 65024.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q5_0, scalar);

void matvec_q5_0_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_q5_0, 32, sizeof(struct block_q5_0));
}
