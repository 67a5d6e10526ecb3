/* bf16 weights; see plain_avx512.h. */
#include "backends/cpu/avx512/plain_avx512.h"

KERNEL(matvec, bf16, avx512);

void matvec_bf16_avx512(const struct matvec *m)
{
    plain_matvec(m, &plain_bf16);
}
