/* Attention over a chunk of keys and values kept as f16. */
#include "backends/cpu/avx2/attn_avx2.h"

KERNEL(attn, f16, avx2);

static inline __attribute__((always_inline)) __m256 load(const void *row, size_t d, size_t n)
{
    const uint16_t *x = (const uint16_t *)row + d;
    uint16_t last[8] = {0};

    if (n >= 8)
        return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)x));
    memcpy(last, x, n * sizeof(*x));
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)last));
}

ATTN_KERNEL(f16, avx2, load, false)
