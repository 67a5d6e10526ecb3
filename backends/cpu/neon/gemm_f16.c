/* f16 weights; see plain_neon.h. */
#include "backends/cpu/neon/plain_neon.h"

KERNEL(gemm, f16, neon);

void gemm_f16_neon(const struct gemm *g)
{
    plain_gemm(g, &plain_f16);
}
