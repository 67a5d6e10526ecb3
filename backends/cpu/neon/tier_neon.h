/*
 * tier_neon - how the baseline multiplies bytes: products widen to 16 bits,
 * two of them are added (at most 128 * 127 * 2 = 32512), then pairs widen to
 * 32.
 *
 * Panels and tiles lie as dotprod's do: four bytes of k of four rows in a
 * vector, one column's sixteen bytes of k in another.
 */
#pragma once

#include "backends/cpu/neon/matvec_neon.h"
#include "backends/cpu/neon/panel_neon.h"
#include "backends/cpu/neon/quads_neon.h"

INLINE int32x4_t dot16_neon(int32x4_t sum, int8x16_t w, int8x16_t a)
{
    int16x8_t p = vmull_s8(vget_low_s8(w), vget_low_s8(a));

    return vpadalq_s16(sum, vmlal_high_s8(p, w, a));
}

/* Products of eight weights (two rows) of k … k + 3 and k + 4 … k + 7, as four dwords. */
INLINE int32x4_t quads_half(int8x8_t w0, int8x8_t w1, int8x8_t a0, int8x8_t a1)
{
    return vpaddlq_s16(vmlal_s8(vmull_s8(w0, a0), w1, a1));
}

INLINE int8x8_t quads_dup(int8x16_t a, int k)
{
    return vreinterpret_s8_s32(vdup_n_s32(vreinterpretq_s32_s8(a)[k]));
}

INLINE void dots_neon(const int8_t w[128], const int8_t a[64], int32x4_t s[STEP_ACCS])
{
#pragma GCC unroll 4
    for (size_t c = 0; c < STEP_COLS; c++) {
        int8x16_t x = vld1q_s8(a + 16 * c);

#pragma GCC unroll 2
        for (int k = 0; k < 4; k += 2) {
            int8x8_t a0 = quads_dup(x, k), a1 = quads_dup(x, k + 1);

#pragma GCC unroll 2
            for (size_t v = 0; v < 2; v++) {
                int8x16_t w0 = vld1q_s8(w + 32 * k + 16 * v);
                int8x16_t w1 = vld1q_s8(w + 32 * k + 32 + 16 * v);
                int32x4_t lo = quads_half(vget_low_s8(w0), vget_low_s8(w1), a0, a1);
                int32x4_t hi = quads_half(vget_high_s8(w0), vget_high_s8(w1), a0, a1);

                s[4 * v + c] = vaddq_s32(s[4 * v + c], vpaddq_s32(lo, hi));
            }
        }
    }
}

static const struct panel_kind panel_neon = {
    QUADS_LAYOUT,
    .dots = dots_neon,
};

void gemm32_neon(const struct gemm *g, const struct blocks32 *f);
void gemm256_neon(const struct gemm *g, const struct blocks256 *f);
