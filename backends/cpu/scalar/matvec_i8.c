/*
 * i8 weights: exact in f32.
 * Shape "plain" of matvec_scalar.h.
 */
#include "backends/cpu/scalar/matvec_scalar.h"

KERNEL(matvec, i8, scalar);

void matvec_i8_scalar(const struct matvec *m)
{
    matvec_plain(m, format_table[FORMAT_i8]);
}
