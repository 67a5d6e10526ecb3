/* q5_0 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q5_0, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    uint8x16_t x = vld1q_u8(w + 6);

    to->lo = vorrq_s8(low_nibbles(x), fifth_bits(w + 2));
    to->hi = vorrq_s8(high_nibbles(x), fifth_bits(w + 4));
    to->lo = vsubq_s8(to->lo, vdupq_n_s8(16));
    to->hi = vsubq_s8(to->hi, vdupq_n_s8(16));
    to->d = half_at(w);
}

void matvec_q5_0_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_q5_0), false);
}
