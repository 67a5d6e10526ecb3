/*
 * i64 weights, rounded to f32 first.
 * Shape "plain" of matvec_scalar.h.
 */
#include "backends/cpu/scalar/matvec_scalar.h"

KERNEL(matvec, i64, scalar);

void matvec_i64_scalar(const struct matvec *m)
{
    matvec_plain(m, format_table[FORMAT_i64]);
}
