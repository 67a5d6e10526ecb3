/*
 * q2_0: isum = Σ (q - 1) * a over 32, |isum| <= 32 * 2 * 127 = 8128;
 * two activation blocks meet one d_w.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q2_0, scalar);

void matvec_q2_0_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_q2_0, 64, sizeof(struct block_q2_0));
}
