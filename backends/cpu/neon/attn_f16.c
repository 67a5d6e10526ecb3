/* Attention over a chunk of keys and values kept as f16. */
#include "backends/cpu/neon/attn_neon.h"

KERNEL(attn, f16, neon);

static inline float32x4_t halves(const uint16_t *x, size_t n)
{
    uint16_t last[4] = {0};

    if (n >= 4)
        return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(x)));
    memcpy(last, x, n * sizeof(*x));
    return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(last)));
}

static inline void decode(const void *row, float *out, size_t n)
{
    const uint16_t *x = row;

    for (size_t d = 0; d < ((n + 15) & ~(size_t)15); d += 4)
        vst1q_f32(out + d, halves(x + d, left_of(n, d)));
}

void attn_f16_neon(const struct attn *a)
{
    attn_neon(a, decode);
}
