/* A row of activations in blocks of 32; see quantize_avx2.h and act.h. */
#include "backends/cpu/avx2/quantize_avx2.h"

KERNEL(quantize, q8_32, avx2);

quantize_fn quantize_q8_32_scalar; /* for blocks that are not finite, and the rest of a row */

void quantize_q8_32_avx2(const float *x, size_t n, void *out)
{
    struct act_q8_32 *to = out;

    for (; n >= 32; n -= 32, x += 32, to++) {
        uint32_t max = quantize_largest(x, 32);
        float inv = 127.0f / f32_of_bits(max);
        __m256i q;
        __m128i sum;

        if (max >= 0x7f800000 || isinf(inv)) {
            quantize_q8_32_scalar(x, 32, to);
            continue;
        }
        q = quantize_bytes(x, inv);
        _mm256_storeu_si256((__m256i *)to->q, q);
        q = quantize_parts(q);
        sum = _mm_add_epi32(_mm256_castsi256_si128(q), _mm256_extracti128_si256(q, 1));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, _MM_SHUFFLE(1, 0, 3, 2)));
        sum = _mm_add_epi32(sum, _mm_shuffle_epi32(sum, _MM_SHUFFLE(2, 3, 0, 1)));
        to->d = f32_of_bits(max) / 127.0f;
        to->sum = _mm_cvtsi128_si32(sum);
    }
    if (n)
        quantize_q8_32_scalar(x, n, to);
}
