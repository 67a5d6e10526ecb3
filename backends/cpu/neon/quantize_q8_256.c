/* A row of activations in blocks of 256; see quantize_neon.h and act.h. */
#include "backends/cpu/neon/quantize_neon.h"

KERNEL(quantize, q8_256, neon);

quantize_fn quantize_q8_256_scalar; /* for blocks that are not finite, and the rest of a row */

void quantize_q8_256_neon(const float *x, size_t n, void *out)
{
    struct act_q8_256 *to = out;

    for (; n >= 256; n -= 256, x += 256, to++) {
        uint32_t max = quantize_largest(x, 256);
        float inv = 127.0f / f32_of_bits(max);

        if (max >= 0x7f800000 || isinf(inv)) {
            quantize_q8_256_scalar(x, 256, to);
            continue;
        }
        for (size_t j = 0; j < 16; j++) {
            int8x16_t q = quantize_bytes(x + 16 * j, inv);

            vst1q_s8(to->q + 16 * j, q);
            to->sums[j] = vaddlvq_s8(q);
        }
        to->d = f32_of_bits(max) / 127.0f;
        memset(to->pad, 0, sizeof(to->pad));
    }
    if (n)
        quantize_q8_256_scalar(x, n, to);
}
