/* f16 weights; see plain_avx2.h. */
#include "backends/cpu/avx2/plain_avx2.h"

KERNEL(gemm, f16, avx2);

void gemm_f16_avx2(const struct gemm *g)
{
    plain_gemm(g, &plain_f16);
}
