/* Attention over a chunk of keys and values kept as f16. */
#include "backends/cpu/avx512/attn_avx512.h"

KERNEL(attn, f16, avx512);

static inline __attribute__((always_inline)) __m512 load(const void *row, size_t d, __mmask16 mask)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask, (const uint16_t *)row + d));
}

ATTN_KERNEL(f16, avx512, load, false)
