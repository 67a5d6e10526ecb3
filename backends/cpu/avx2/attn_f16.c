/* Attention over a chunk of keys and values kept as f16. */
#include "backends/cpu/avx2/attn_avx2.h"

KERNEL(attn, f16, avx2);

static inline __m256 halves(const uint16_t *x, size_t n)
{
    uint16_t last[8] = {0};

    if (n >= 8)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
    memcpy(last, x, n * sizeof(*x));
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)last));
}

static inline void decode(const void *row, float *out, size_t n)
{
    const uint16_t *x = row;

    for (size_t d = 0; d < n; d += 16) {
        _mm256_store_ps(out + d, halves(x + d, n - d));
        _mm256_store_ps(out + d + 8, halves(x + d + 8, left8(n, d + 8)));
    }
}

void attn_f16_avx2(const struct attn *a)
{
    attn_avx2(a, decode);
}
