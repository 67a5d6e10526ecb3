/* f32 weights; see plain_neon.h. */
#include "backends/cpu/neon/plain_neon.h"

KERNEL(gemm, f32, neon);

void gemm_f32_neon(const struct gemm *g)
{
    plain_gemm(g, &plain_f32);
}
