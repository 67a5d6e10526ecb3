/* f16 weights; see plain_neon.h. */
#include "backends/cpu/neon/plain_neon.h"

KERNEL(matvec, f16, neon);

void matvec_f16_neon(const struct matvec *m)
{
    plain_matvec(m, &plain_f16);
}
