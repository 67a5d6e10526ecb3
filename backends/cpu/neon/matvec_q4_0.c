/* q4_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q4_0, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    uint8x16_t x = vld1q_u8(w + 2);

    to->lo = vsubq_s8(low_nibbles(x), vdupq_n_s8(8));
    to->hi = vsubq_s8(high_nibbles(x), vdupq_n_s8(8));
    to->d = half_at(w);
}

void matvec_q4_0_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_q4_0), false);
}
