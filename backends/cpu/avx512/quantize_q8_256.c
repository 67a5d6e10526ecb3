/* A row of activations in blocks of 256; see quantize_avx512.h and act.h. */
#include <math.h>
#include <string.h>

#include "backends/cpu/avx512/quantize_avx512.h"

KERNEL(quantize, q8_256, avx512);

quantize_fn quantize_q8_256_scalar; /* for blocks that are not finite, and the rest of a row */

static uint32_t largest(const float *x)
{
    __m512i max[4];

    for (size_t i = 0; i < 4; i++)
        max[i] = quantize_abs(x + 16 * i);
    for (size_t i = 4; i < 16; i++)
        max[i % 4] = _mm512_max_epu32(max[i % 4], quantize_abs(x + 16 * i));
    max[0] = _mm512_max_epu32(max[0], max[1]);
    max[2] = _mm512_max_epu32(max[2], max[3]);
    return _mm512_reduce_max_epu32(_mm512_max_epu32(max[0], max[2]));
}

static void quantize_whole(const float *x, struct act_q8_256 *to)
{
    uint32_t max = largest(x);
    float inv = 127.0f / f32_of_bits(max);
    __m512 invs[4];
    __m512i q[4];

    if (max >= 0x7f800000 || isinf(inv)) {
        quantize_q8_256_scalar(x, 256, to);
        return;
    }
    for (size_t i = 0; i < 4; i++)
        invs[i] = _mm512_set1_ps(inv);
    for (size_t i = 0; i < 4; i++) {
        q[i] = quantize_bytes(x + 64 * i, invs);
        _mm512_storeu_si512(to->q + 64 * i, q[i]);
    }
    _mm256_storeu_si256((__m256i *)to->sums, _mm512_cvtepi32_epi16(quantize_sums(q)));
    to->d = f32_of_bits(max) / 127.0f;
    memset(to->pad, 0, sizeof(to->pad));
}

void quantize_q8_256_avx512(const float *x, size_t n, void *out)
{
    struct act_q8_256 *to = out;

    for (; n >= 256; n -= 256, x += 256)
        quantize_whole(x, to++);
    if (n)
        quantize_q8_256_scalar(x, n, to);
}
