/* f32 weights; see plain_avx2.h. */
#include "backends/cpu/avx2/plain_avx2.h"

KERNEL(matvec, f32, avx2);

void matvec_f32_avx2(const struct matvec *m)
{
    plain_matvec(m, &plain_f32);
}
