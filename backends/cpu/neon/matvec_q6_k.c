/* q6_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q6_k, neon);

INLINE void decode(const uint8_t *w, struct decoded256 *to)
{
    const uint8x16_t bits = vdupq_n_u8(48);
    const int8x16_t zero = vdupq_n_s8(32);

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 32; j += 16) {
            uint8x16_t a = vld1q_u8(w + 64 * i + j), b = vld1q_u8(w + 64 * i + 32 + j);
            uint8x16_t h = vld1q_u8(w + 128 + 32 * i + j);
            int8_t *q = to->q + 128 * i + j;
            int8x16_t h0 = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(h, 4), bits));
            int8x16_t h1 = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(h, 2), bits));
            int8x16_t h2 = vreinterpretq_s8_u8(vandq_u8(h, bits));
            int8x16_t h3 = vreinterpretq_s8_u8(vandq_u8(vshrq_n_u8(h, 2), bits));

            vst1q_s8(q, vsubq_s8(vorrq_s8(low_nibbles(a), h0), zero));
            vst1q_s8(q + 32, vsubq_s8(vorrq_s8(low_nibbles(b), h1), zero));
            vst1q_s8(q + 64, vsubq_s8(vorrq_s8(high_nibbles(a), h2), zero));
            vst1q_s8(q + 96, vsubq_s8(vorrq_s8(high_nibbles(b), h3), zero));
        }
    for (size_t j = 0; j < 16; j++)
        to->scale[j] = (int8_t)w[192 + j];
    to->d = half_at(w + 208);
}

void matvec_q6_k_neon(const struct matvec *m)
{
    matvec256(m, decode, sizeof(struct block_q6_k), false);
}
