/* f32 weights; see plain_avx512.h. */
#include "backends/cpu/avx512/plain_avx512.h"

KERNEL(matvec, f32, avx512);

void matvec_f32_avx512(const struct matvec *m)
{
    plain_matvec(m, &plain_f32);
}
