/* Attention over a chunk of keys and values kept as q4_0: a value is d * (q - 8), exact in f32. */
#include "backends/cpu/neon/attn_neon.h"
#include "backends/formats/blocks.h"
#include "backends/formats/half.h"

KERNEL(attn, q4_0, neon);

static inline void put8(float *out, int8x8_t q, float32x4_t d)
{
    int16x8_t w = vmovl_s8(q);

    vst1q_f32(out, vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(w))), d));
    vst1q_f32(out + 4, vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(w))), d));
}

/* Elements 0 … 15 of a block are the low nibbles, 16 … 31 the high ones. */
static inline void decode(const void *row, float *out, size_t n)
{
    const struct block_q4_0 *b = row;

    for (size_t i = 0; i < n; i += 32, b++) {
        float32x4_t d = vdupq_n_f32(f16_to_f32(b->d));
        uint8x16_t raw = vld1q_u8(b->qs);
        int8x16_t lo = vreinterpretq_s8_u8(vandq_u8(raw, vdupq_n_u8(15)));
        int8x16_t hi = vreinterpretq_s8_u8(vshrq_n_u8(raw, 4));

        lo = vsubq_s8(lo, vdupq_n_s8(8));
        hi = vsubq_s8(hi, vdupq_n_s8(8));
        put8(out + i, vget_low_s8(lo), d);
        put8(out + i + 8, vget_high_s8(lo), d);
        put8(out + i + 16, vget_low_s8(hi), d);
        put8(out + i + 24, vget_high_s8(hi), d);
    }
}

void attn_q4_0_neon(const struct attn *a)
{
    attn_neon(a, decode);
}
