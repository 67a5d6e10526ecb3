/* A selective state space: two registers hold the columns of a row of the state. */
#include "backends/cpu/avx2/vec_avx2.h"
#include "backends/cpu/columns.h"

KERNEL(ssm, f32, avx2);

void ssm_f32_avx2(const struct ssm *s)
{
    ssm_columns(s);
}
