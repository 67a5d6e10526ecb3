/*
 * quads_neon - panels and tiles for sums of four products (sdot): a vector of
 * weights is four bytes of k of four rows, a vector of activations is sixteen
 * bytes of k of one column.  An accumulator is four rows of one column.
 */
#pragma once

#include "backends/cpu/neon/panel_neon.h"

INLINE size_t quads_row_of(size_t v, size_t lane)
{
    return 4 * v + lane;
}

INLINE size_t quads_col_of(size_t c, size_t lane)
{
    (void)lane;
    return c;
}

INLINE float32x4_t quads_columns(float32x4_t four, size_t c)
{
    return vdupq_n_f32(four[c]);
}

/* [k / 4][row][4] */
INLINE void quads_put_weights(const int8x16_t q[PANEL_ROWS], int8_t to[128])
{
#pragma GCC unroll 2
    for (size_t v = 0; v < 2; v++) {
        int32x4_t r0 = vreinterpretq_s32_s8(q[4 * v]), r1 = vreinterpretq_s32_s8(q[4 * v + 1]);
        int32x4_t r2 = vreinterpretq_s32_s8(q[4 * v + 2]), r3 = vreinterpretq_s32_s8(q[4 * v + 3]);
        int64x2_t a = vreinterpretq_s64_s32(vzip1q_s32(r0, r1));
        int64x2_t b = vreinterpretq_s64_s32(vzip1q_s32(r2, r3));
        int64x2_t c = vreinterpretq_s64_s32(vzip2q_s32(r0, r1));
        int64x2_t d = vreinterpretq_s64_s32(vzip2q_s32(r2, r3));

        vst1q_s8(to + 16 * v, vreinterpretq_s8_s64(vzip1q_s64(a, b)));
        vst1q_s8(to + 32 + 16 * v, vreinterpretq_s8_s64(vzip2q_s64(a, b)));
        vst1q_s8(to + 64 + 16 * v, vreinterpretq_s8_s64(vzip1q_s64(c, d)));
        vst1q_s8(to + 96 + 16 * v, vreinterpretq_s8_s64(vzip2q_s64(c, d)));
    }
}

/* [column][16] */
INLINE void quads_put_acts(const int8x16_t q[STEP_COLS], int8_t to[64])
{
    for (size_t c = 0; c < STEP_COLS; c++)
        vst1q_s8(to + 16 * c, q[c]);
}

#define QUADS_LAYOUT                                                                               \
    .w_vecs = 2, .a_vecs = 4, .row_of = quads_row_of, .col_of = quads_col_of,                      \
    .columns = quads_columns, .put_weights = quads_put_weights, .put_acts = quads_put_acts
