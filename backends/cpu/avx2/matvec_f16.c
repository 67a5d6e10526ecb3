/* f16 weights; see plain_avx2.h. */
#include "backends/cpu/avx2/plain_avx2.h"

KERNEL(matvec, f16, avx2);

void matvec_f16_avx2(const struct matvec *m)
{
    plain_matvec(m, &plain_f16);
}
