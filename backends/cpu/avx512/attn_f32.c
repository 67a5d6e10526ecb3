/* Attention over a chunk of keys and values kept as f32. */
#include "backends/cpu/avx512/attn_avx512.h"

KERNEL(attn, f32, avx512);

static inline void decode(const void *row, float *out, size_t n)
{
    const float *x = row;

    for (size_t d = 0; d < n; d += 16)
        _mm512_store_ps(out + d, _mm512_maskz_loadu_ps(tail16(n - d), x + d));
}

void attn_f32_avx512(const struct attn *a)
{
    attn_avx512(a, decode);
}
