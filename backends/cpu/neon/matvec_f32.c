/* f32 weights; see plain_neon.h. */
#include "backends/cpu/neon/plain_neon.h"

KERNEL(matvec, f32, neon);

void matvec_f32_neon(const struct matvec *m)
{
    plain_matvec(m, &plain_f32);
}
