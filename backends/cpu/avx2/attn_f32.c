/* Attention over a chunk of keys and values kept as f32. */
#include "backends/cpu/avx2/attn_avx2.h"

KERNEL(attn, f32, avx2);

static inline void decode(const void *row, float *out, size_t n)
{
    const float *x = row;

    for (size_t d = 0; d < n; d += 16) {
        _mm256_store_ps(out + d, load8(x + d, n - d));
        _mm256_store_ps(out + d + 8, load8(x + d + 8, left8(n, d + 8)));
    }
}

void attn_f32_avx2(const struct attn *a)
{
    attn_avx2(a, decode);
}
