/* Attention over a chunk of keys and values kept as f32. */
#include "backends/cpu/neon/attn_neon.h"

KERNEL(attn, f32, neon);

static inline void decode(const void *row, float *out, size_t n)
{
    const float *x = row;

    for (size_t d = 0; d < ((n + 15) & ~(size_t)15); d += 4)
        vst1q_f32(out + d, load4(x + d, left_of(n, d)));
}

void attn_f32_neon(const struct attn *a)
{
    attn_neon(a, decode);
}
