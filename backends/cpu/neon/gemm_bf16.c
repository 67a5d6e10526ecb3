/* bf16 weights; see plain_neon.h. */
#include "backends/cpu/neon/plain_neon.h"

KERNEL(gemm, bf16, neon);

void gemm_bf16_neon(const struct gemm *g)
{
    plain_gemm(g, &plain_bf16);
}
