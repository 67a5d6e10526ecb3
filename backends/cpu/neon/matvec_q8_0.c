/* q8_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q8_0, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    to->lo = vreinterpretq_s8_u8(vld1q_u8(w + 2));
    to->hi = vreinterpretq_s8_u8(vld1q_u8(w + 18));
    to->d = half_at(w);
}

void matvec_q8_0_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_q8_0), false);
}
