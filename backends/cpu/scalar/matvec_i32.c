/*
 * i32 weights, rounded to f32 first.
 * Shape "plain" of matvec_scalar.h.
 */
#include "backends/cpu/scalar/matvec_scalar.h"

KERNEL(matvec, i32, scalar);

void matvec_i32_scalar(const struct matvec *m)
{
    matvec_plain(m, format_table[FORMAT_i32]);
}
