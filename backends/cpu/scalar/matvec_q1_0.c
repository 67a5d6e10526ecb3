/*
 * q1_0: isum = Σ ±a over 32, |isum| <= 4064; four activation blocks meet one d_w.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, q1_0, scalar);

void matvec_q1_0_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_q1_0, 128, sizeof(struct block_q1_0));
}
