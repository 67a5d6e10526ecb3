/* iq4_nl × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, iq4_nl, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    uint8x16_t x = vld1q_u8(w + 2);
    int8x16_t values = vld1q_s8(iq4_values);

    to->lo = vqtbl1q_s8(values, vreinterpretq_u8_s8(low_nibbles(x)));
    to->hi = vqtbl1q_s8(values, vreinterpretq_u8_s8(high_nibbles(x)));
    to->d = half_at(w);
}

void matvec_iq4_nl_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_iq4_nl), false);
}
