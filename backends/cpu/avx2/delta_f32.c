/* The gated delta rule: two registers hold the columns of a row of the state. */
#include "backends/cpu/avx2/vec_avx2.h"
#include "backends/cpu/columns.h"

KERNEL(delta, f32, avx2);

void delta_f32_avx2(const struct delta *d)
{
    delta_columns(d);
}
