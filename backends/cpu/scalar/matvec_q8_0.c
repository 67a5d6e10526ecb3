/*
 * q8_0: isum = Σ q * a over 32, |isum| <= 32 * 128 * 127 = 520192.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q8_0, scalar);

void matvec_q8_0_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_q8_0, 32, sizeof(struct block_q8_0));
}
