/*
 * tier_i8mm - how ARMv8.6's SMMLA multiplies bytes: two rows x eight of k by
 * two columns x eight of k, four sums at once.
 *
 * A vector of weights is eight bytes of k of two rows, one of activations the
 * same of two columns; an accumulator is 2 x 2 outputs, row by row.  Two to
 * four columns pass through panels too: half as many multiplications as SDOT
 * would take.  One column has no use for them and takes the dotprod body.
 */
#pragma once

#include "backends/cpu/neon/matvec_neon.h"
#include "backends/cpu/neon/panel_neon.h"

INLINE int32x4_t dot16_i8mm(int32x4_t sum, int8x16_t w, int8x16_t a)
{
    return vdotq_s32(sum, w, a);
}

INLINE size_t pairs_row_of(size_t v, size_t lane)
{
    return 2 * v + lane / 2;
}

INLINE size_t pairs_col_of(size_t c, size_t lane)
{
    return 2 * c + lane % 2;
}

INLINE float32x4_t pairs_columns(float32x4_t four, size_t c)
{
    float64x2_t x = vreinterpretq_f64_f32(four);

    return vreinterpretq_f32_f64(vdupq_n_f64(x[c]));
}

/* Two runs of sixteen as [k / 8][run][8], `apart` bytes from one k / 8 to the next. */
INLINE void pairs_put(int8x16_t a, int8x16_t b, size_t apart, int8_t *to)
{
    int64x2_t x = vreinterpretq_s64_s8(a), y = vreinterpretq_s64_s8(b);

    vst1q_s8(to, vreinterpretq_s8_s64(vzip1q_s64(x, y)));
    vst1q_s8(to + apart, vreinterpretq_s8_s64(vzip2q_s64(x, y)));
}

INLINE void pairs_put_weights(const int8x16_t q[PANEL_ROWS], int8_t to[128])
{
#pragma GCC unroll 4
    for (size_t v = 0; v < 4; v++)
        pairs_put(q[2 * v], q[2 * v + 1], 64, to + 16 * v);
}

INLINE void pairs_put_acts(const int8x16_t q[STEP_COLS], int8_t to[64])
{
    pairs_put(q[0], q[1], 32, to);
    pairs_put(q[2], q[3], 32, to + 16);
}

INLINE void dots_i8mm(const int8_t w[128], const int8_t a[64], int32x4_t s[STEP_ACCS])
{
#pragma GCC unroll 2
    for (size_t k = 0; k < 2; k++) {
        int8x16_t a0 = vld1q_s8(a + 32 * k), a1 = vld1q_s8(a + 32 * k + 16);

#pragma GCC unroll 4
        for (size_t v = 0; v < 4; v++) {
            int8x16_t x = vld1q_s8(w + 64 * k + 16 * v);

            s[2 * v] = vmmlaq_s32(s[2 * v], x, a0);
            s[2 * v + 1] = vmmlaq_s32(s[2 * v + 1], x, a1);
        }
    }
}

static const struct panel_kind panel_i8mm = {
    .w_vecs = 4,
    .a_vecs = 2,
    .row_of = pairs_row_of,
    .col_of = pairs_col_of,
    .columns = pairs_columns,
    .put_weights = pairs_put_weights,
    .put_acts = pairs_put_acts,
    .dots = dots_i8mm,
};

void gemm32_i8mm(const struct gemm *g, const struct blocks32 *f);
void gemm256_i8mm(const struct gemm *g, const struct blocks256 *f);

#define NARROW_KERNEL(fmt, one, narrow, blocks)                                                    \
    void matvec_##fmt##_i8mm(const struct matvec *m)                                               \
    {                                                                                              \
        if (m->cols == 1)                                                                          \
            one(m, &blocks, 1, dot16_i8mm);                                                        \
        else                                                                                       \
            narrow(m, &blocks, &panel_i8mm);                                                       \
    }
#define NARROW32(fmt)  NARROW_KERNEL(fmt, matvec32_cols, narrow32, blocks32_##fmt)
#define NARROW256(fmt) NARROW_KERNEL(fmt, matvec256_cols, narrow256, blocks256_##fmt)
