/* Attention over a chunk of keys and values kept as f32. */
#include "backends/cpu/avx2/attn_avx2.h"

KERNEL(attn, f32, avx2);

static inline __attribute__((always_inline)) __m256 load(const void *row, size_t d, size_t n)
{
    return load8((const float *)row + d, n);
}

ATTN_KERNEL(f32, avx2, load, false)
