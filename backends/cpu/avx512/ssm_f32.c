/* A selective state space: a register holds the columns of a row of the state. */
#include "backends/cpu/avx512/vec_avx512.h"
#include "backends/cpu/columns.h"

KERNEL(ssm, f32, avx512);

void ssm_f32_avx512(const struct ssm *s)
{
    ssm_columns(s);
}
