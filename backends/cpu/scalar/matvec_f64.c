/*
 * f64 weights, rounded to f32 first.
 * Shape "plain" of matvec_scalar.h.
 */
#include "backends/cpu/scalar/matvec_scalar.h"

KERNEL(matvec, f64, scalar);

void matvec_f64_scalar(const struct matvec *m)
{
    matvec_plain(m, format_table[FORMAT_f64]);
}
