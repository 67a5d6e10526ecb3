/* bf16 weights; see plain_avx512.h. */
#include "backends/cpu/avx512/plain_avx512.h"

KERNEL(gemm, bf16, avx512);

void gemm_bf16_avx512(const struct gemm *g)
{
    plain_gemm(g, &plain_bf16);
}
