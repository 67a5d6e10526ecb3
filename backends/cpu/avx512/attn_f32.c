/* Attention over a chunk of keys and values kept as f32. */
#include "backends/cpu/avx512/attn_avx512.h"

KERNEL(attn, f32, avx512);

static inline __attribute__((always_inline)) __m512 load(const void *row, size_t d, __mmask16 mask)
{
    return _mm512_maskz_loadu_ps(mask, (const float *)row + d);
}

ATTN_KERNEL(f32, avx512, load, false)
