/* q5_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q5_k, neon);

INLINE void decode(const uint8_t *w, struct decoded256 *to)
{
    const uint8x16_t bit = vdupq_n_u8(16);

    for (size_t j = 0; j < 32; j += 16) {
        uint8x16_t h = vld1q_u8(w + 16 + j);

        for (size_t i = 0; i < 4; i++) {
            uint8x16_t x = vld1q_u8(w + 48 + 32 * i + j);
            int8x16_t a = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(h, 4), bit));
            int8x16_t b = vreinterpretq_s8_u8(vandq_u8(vshlq_n_u8(h, 3), bit));

            vst1q_s8(to->q + 64 * i + j, vorrq_s8(low_nibbles(x), a));
            vst1q_s8(to->q + 64 * i + 32 + j, vorrq_s8(high_nibbles(x), b));
            h = vshrq_n_u8(h, 2);
        }
    }
    decode_scales_k(w, to);
}

void matvec_q5_k_neon(const struct matvec *m)
{
    matvec256(m, decode, sizeof(struct block_q5_k), true);
}
