/* bf16 weights; see plain_avx2.h. */
#include "backends/cpu/avx2/plain_avx2.h"

KERNEL(matvec, bf16, avx2);

void matvec_bf16_avx2(const struct matvec *m)
{
    plain_matvec(m, &plain_bf16);
}
