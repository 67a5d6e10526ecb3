/* bf16 weights; see plain_neon.h. */
#include "backends/cpu/neon/plain_neon.h"

KERNEL(matvec, bf16, neon);

void matvec_bf16_neon(const struct matvec *m)
{
    plain_matvec(m, &plain_bf16);
}
