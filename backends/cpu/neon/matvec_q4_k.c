/* q4_k × int8 activations; see matvec_neon.h. */
#include "backends/cpu/neon/matvec_neon.h"

KERNEL(matvec, q4_k, neon);

INLINE void decode(const uint8_t *w, struct decoded256 *to)
{
    for (size_t i = 0; i < 4; i++)
        for (size_t j = 0; j < 32; j += 16) {
            uint8x16_t x = vld1q_u8(w + 16 + 32 * i + j);

            vst1q_s8(to->q + 64 * i + j, low_nibbles(x));
            vst1q_s8(to->q + 64 * i + 32 + j, high_nibbles(x));
        }
    decode_scales_k(w, to);
}

void matvec_q4_k_neon(const struct matvec *m)
{
    matvec256(m, decode, sizeof(struct block_q4_k), true);
}
