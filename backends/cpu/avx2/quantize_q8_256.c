/* A row of activations in blocks of 256; see quantize_avx2.h and act.h. */
#include "backends/cpu/avx2/quantize_avx2.h"

KERNEL(quantize, q8_256, avx2);

quantize_fn quantize_q8_256_scalar; /* for blocks that are not finite, and the rest of a row */

static void quantize_whole(const float *x, struct act_q8_256 *to)
{
    uint32_t max = quantize_largest(x, 256);
    float inv = 127.0f / f32_of_bits(max);

    if (max >= 0x7f800000 || isinf(inv)) {
        quantize_q8_256_scalar(x, 256, to);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        __m256i parts[4], sums;
        int32_t pairs[8];

        for (size_t j = 0; j < 4; j++) {
            __m256i q = quantize_bytes(x + 128 * i + 32 * j, inv);

            _mm256_storeu_si256((__m256i *)(to->q + 128 * i + 32 * j), q);
            parts[j] = quantize_parts(q);
        }
        /* Lane l, element j: sums of sixteen 2j + l. */
        sums = lanes_sum4(parts);
        _mm256_storeu_si256((__m256i *)pairs, sums);
        for (size_t j = 0; j < 8; j++)
            to->sums[8 * i + j] = (int16_t)pairs[j % 2 * 4 + j / 2];
    }
    to->d = f32_of_bits(max) / 127.0f;
    memset(to->pad, 0, sizeof(to->pad));
}

void quantize_q8_256_avx2(const float *x, size_t n, void *out)
{
    struct act_q8_256 *to = out;

    for (; n >= 256; n -= 256, x += 256)
        quantize_whole(x, to++);
    if (n)
        quantize_q8_256_scalar(x, n, to);
}
