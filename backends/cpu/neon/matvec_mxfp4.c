/* mxfp4 × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, mxfp4, neon);

INLINE void decode(const uint8_t *w, struct decoded32 *to)
{
    uint8x16_t x = vld1q_u8(w + 1);
    int8x16_t values = vld1q_s8(fp4_doubled);

    to->lo = vqtbl1q_s8(values, vreinterpretq_u8_s8(low_nibbles(x)));
    to->hi = vqtbl1q_s8(values, vreinterpretq_u8_s8(high_nibbles(x)));
    to->d = e8m0_half_to_f32(w[0]);
}

void matvec_mxfp4_neon(const struct matvec *m)
{
    matvec32(m, decode, sizeof(struct block_mxfp4), false);
}
