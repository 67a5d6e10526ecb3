/*
 * tier_dotprod - how ARMv8.2's SDOT multiplies bytes: four products added to
 * each dword.  Bodies and layouts are backends/cpu/neon's.
 */
#pragma once

#include "backends/cpu/neon/matvec_neon.h"
#include "backends/cpu/neon/panel_neon.h"
#include "backends/cpu/neon/quads_neon.h"

INLINE int32x4_t dot16_dotprod(int32x4_t sum, int8x16_t w, int8x16_t a)
{
    return vdotq_s32(sum, w, a);
}

/* Bytes 4k … 4k + 3 of a column against four rows. */
#define DOTS_LANE(k)                                                                               \
    for (size_t v = 0; v < 2; v++) {                                                               \
        int8x16_t x = vld1q_s8(w + 32 * (k) + 16 * v);                                             \
                                                                                                   \
        for (size_t c = 0; c < STEP_COLS; c++)                                                     \
            s[4 * v + c] = vdotq_laneq_s32(s[4 * v + c], x, act[c], k);                            \
    }

INLINE void dots_dotprod(const int8_t w[128], const int8_t a[64], int32x4_t s[STEP_ACCS])
{
    int8x16_t act[STEP_COLS];

    for (size_t c = 0; c < STEP_COLS; c++)
        act[c] = vld1q_s8(a + 16 * c);
    DOTS_LANE(0)
    DOTS_LANE(1)
    DOTS_LANE(2)
    DOTS_LANE(3)
}

static const struct panel_kind panel_dotprod = {
    QUADS_LAYOUT,
    .dots = dots_dotprod,
};

void gemm32_dotprod(const struct gemm *g, const struct blocks32 *f);
void gemm256_dotprod(const struct gemm *g, const struct blocks256 *f);
