/* The gated delta rule: a register holds the columns of a row of the state. */
#include "backends/cpu/avx512/vec_avx512.h"
#include "backends/cpu/columns.h"

KERNEL(delta, f32, avx512);

void delta_f32_avx512(const struct delta *d)
{
    delta_columns(d);
}
