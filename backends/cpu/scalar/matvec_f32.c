/*
 * f32 weights, as they are.
 * Shape "plain" of matvec_scalar.h.
 */
#include "backends/cpu/scalar/matvec_scalar.h"

KERNEL(matvec, f32, scalar);

void matvec_f32_scalar(const struct matvec *m)
{
    matvec_plain(m, format_table[FORMAT_f32]);
}
