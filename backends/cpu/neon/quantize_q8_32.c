/* A row of activations in blocks of 32; see quantize_neon.h and act.h. */
#include "backends/cpu/neon/quantize_neon.h"

KERNEL(quantize, q8_32, neon);

quantize_fn quantize_q8_32_scalar; /* for blocks that are not finite, and the rest of a row */

void quantize_q8_32_neon(const float *x, size_t n, void *out)
{
    struct act_q8_32 *to = out;

    for (; n >= 32; n -= 32, x += 32, to++) {
        uint32_t max = quantize_largest(x, 32);
        float inv = 127.0f / f32_of_bits(max);
        int8x16_t lo, hi;

        if (max >= 0x7f800000 || isinf(inv)) {
            quantize_q8_32_scalar(x, 32, to);
            continue;
        }
        lo = quantize_bytes(x, inv);
        hi = quantize_bytes(x + 16, inv);
        vst1q_s8(to->q, lo);
        vst1q_s8(to->q + 16, hi);
        to->d = f32_of_bits(max) / 127.0f;
        to->sum = vaddlvq_s8(lo) + vaddlvq_s8(hi);
    }
    if (n)
        quantize_q8_32_scalar(x, n, to);
}
