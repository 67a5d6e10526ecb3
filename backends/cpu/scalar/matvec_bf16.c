/*
 * bf16 weights: exact in f32.
 * Shape "plain" of matvec_scalar.h.
 */
#include "backends/cpu/scalar/matvec_scalar.h"

KERNEL(matvec, bf16, scalar);

void matvec_bf16_scalar(const struct matvec *m)
{
    matvec_plain(m, format_table[FORMAT_bf16]);
}
