/* A row of activations in blocks of 32, eight at a time; see quantize_avx512.h and act.h. */
#include "backends/cpu/avx512/quantize_avx512.h"

KERNEL(quantize, q8_32, avx512);

quantize_fn quantize_q8_32_scalar; /* for blocks that are not finite */

#define MAX(a, b) _mm512_max_epu32(a, b)

/* Every lane: element i = largest of x[i] in that lane. */
static inline __m512i lanes_max4(const __m512i x[4])
{
    __m512i a = MAX(_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpackhi_epi32(x[0], x[1]));
    __m512i b = MAX(_mm512_unpacklo_epi32(x[2], x[3]), _mm512_unpackhi_epi32(x[2], x[3]));

    return MAX(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b));
}

/* The largest |x| of eight blocks, in order. */
static inline __m256i largest8(const float *x)
{
    __m512i m[8], a, b;

    for (size_t i = 0; i < 8; i++)
        m[i] = MAX(quantize_abs(x + 32 * i), quantize_abs(x + 32 * i + 16));
    a = lanes_max4(m);
    b = lanes_max4(m + 4);
    /* lanes 0, 1 of a and 0, 1 of b against lanes 2, 3 */
    a = MAX(_mm512_shuffle_i64x2(a, b, 0x44), _mm512_shuffle_i64x2(a, b, 0xee));
    a = MAX(a, _mm512_shuffle_i64x2(a, a, 0xb1));
    return _mm512_castsi512_si256(_mm512_shuffle_i64x2(a, a, 0x08));
}

static void quantize_eight(const float *x, struct act_q8_32 *to)
{
    __m256i max = largest8(x);
    __m256 inv = _mm256_div_ps(_mm256_set1_ps(127.0f), _mm256_castsi256_ps(max));
    __m256 d = _mm256_div_ps(_mm256_castsi256_ps(max), _mm256_set1_ps(127.0f));
    __m512i q[4], sums;
    const __m256i infinity = _mm256_set1_epi32(0x7f800000);
    __mmask8 scaled = _mm256_cmplt_epu32_mask(_mm256_castps_si256(inv), infinity);
    float ds[8];
    int32_t halves[16];

    if (_mm256_cmpge_epu32_mask(max, infinity)) {
        quantize_q8_32_scalar(x, 256, to);
        return;
    }
    inv = _mm256_maskz_mov_ps(scaled, inv); /* zeros, or too small for a scale: all zero */
    d = _mm256_maskz_mov_ps(scaled, d);
    for (size_t i = 0; i < 4; i++) {
        __m512 all = _mm512_castps256_ps512(inv);
        __m512 first = _mm512_permutexvar_ps(_mm512_set1_epi32((int)(2 * i)), all);
        __m512 second = _mm512_permutexvar_ps(_mm512_set1_epi32((int)(2 * i + 1)), all);

        q[i] = quantize_bytes(x + 64 * i, (const __m512[4]){first, first, second, second});
        _mm256_storeu_si256((__m256i *)to[2 * i].q, _mm512_castsi512_si256(q[i]));
        _mm256_storeu_si256((__m256i *)to[2 * i + 1].q, _mm512_extracti64x4_epi64(q[i], 1));
    }
    sums = quantize_sums(q);
    _mm512_storeu_si512(halves, sums);
    _mm256_storeu_ps(ds, d);
    for (size_t i = 0; i < 8; i++) {
        to[i].d = ds[i];
        to[i].sum = halves[2 * i] + halves[2 * i + 1];
    }
}

void quantize_q8_32_avx512(const float *x, size_t n, void *out)
{
    struct act_q8_32 *to = out;

    for (; n >= 256; n -= 256, x += 256, to += 8)
        quantize_eight(x, to);
    if (n) {
        float rest[256] = {0};
        struct act_q8_32 blocks[8];

        memcpy(rest, x, n * sizeof(float));
        quantize_eight(rest, blocks);
        memcpy(to, blocks, (n + 31) / 32 * sizeof(*to));
    }
}
