/*
 * iq4_nl: isum = Σ value * a over 32, |isum| <= 32 * 127 * 127 = 516128.
 * f32 order: shape "one" of matvec_scalar.h, one fma per 32 weights.
 */
#include "backends/cpu/scalar/matvec_scalar.h"
#include "backends/formats/blocks.h"

KERNEL(matvec, iq4_nl, scalar);

void matvec_iq4_nl_scalar(const struct matvec *m)
{
    matvec_one(m, unpack_iq4_nl, 32, sizeof(struct block_iq4_nl));
}
