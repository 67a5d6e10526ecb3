/* f16 weights; see plain_avx512.h. */
#include "backends/cpu/avx512/plain_avx512.h"

KERNEL(gemm, f16, avx512);

void gemm_f16_avx512(const struct gemm *g)
{
    plain_gemm(g, &plain_f16);
}
