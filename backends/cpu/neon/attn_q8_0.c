/* Attention over a chunk of keys and values kept as q8_0: a value is d * q, exact in f32. */
#include "backends/cpu/neon/attn_neon.h"
#include "backends/formats/blocks.h"
#include "backends/formats/half.h"

KERNEL(attn, q8_0, neon);

static inline void decode(const void *row, float *out, size_t n)
{
    const struct block_q8_0 *b = row;

    for (size_t i = 0; i < n; i += 32, b++) {
        float32x4_t d = vdupq_n_f32(f16_to_f32(b->d));

        for (size_t h = 0; h < 32; h += 8) {
            int16x8_t q = vmovl_s8(vld1_s8(b->qs + h));

            vst1q_f32(out + i + h, vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(q))), d));
            vst1q_f32(out + i + h + 4, vmulq_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(q))), d));
        }
    }
}

void attn_q8_0_neon(const struct attn *a)
{
    attn_neon(a, decode);
}
