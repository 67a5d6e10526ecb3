/* q5_1 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q5_1, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    uint8x16_t x = vld1q_u8(w + 8);

    to->lo = vorrq_s8(low_nibbles(x), fifth_bits(w + 4));
    to->hi = vorrq_s8(high_nibbles(x), fifth_bits(w + 6));
    to->d = half_at(w);
    to->m = half_at(w + 2);
}

void matvec_q5_1_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_q5_1), true);
}
