/* q4_1 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q4_1, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    uint8x16_t x = vld1q_u8(w + 4);

    to->lo = low_nibbles(x);
    to->hi = high_nibbles(x);
    to->d = half_at(w);
    to->m = half_at(w + 2);
}

void matvec_q4_1_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_q4_1), true);
}
