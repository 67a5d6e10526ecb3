/*
 * matvec_neon - one to four columns: four rows at a time, side by side, from
 * the file's bytes.
 *
 * A block is decoded to signed bytes once for all columns; what is inside it
 * adds up in integers, the four rows' sums meet in one vector, and the f32
 * steps of kernels.h run for four rows at once, blocks in order.  Rows that
 * the matrix does not have are its last one again, and are not stored.
 */
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/blocks256_neon.h"
#include "backends/cpu/neon/blocks32_neon.h"

#define MATVEC_COLS 4

struct rows4 {
    const uint8_t *w[4];
    float32x4_t acc[MATVEC_COLS];
};

INLINE void rows4_init(struct rows4 *rows, const struct matvec *m, size_t r)
{
    for (size_t i = 0; i < 4; i++) {
        size_t row = r + i < m->rows ? r + i : m->rows - 1;

        rows->w[i] = (const uint8_t *)m->w + row * m->row_bytes;
    }
    for (size_t c = 0; c < MATVEC_COLS; c++)
        rows->acc[c] = vdupq_n_f32(0.0f);
}

/* To the next block; asks for the same one of the next four rows. */
INLINE void rows4_step(struct rows4 *rows, const struct matvec *m, size_t bytes)
{
    for (size_t i = 0; i < 4; i++) {
        for (size_t at = 0; at < bytes; at += 64)
            __builtin_prefetch((const void *)((uintptr_t)rows->w[i] + 4 * m->row_bytes + at), 0, 2);
        rows->w[i] += bytes;
    }
}

INLINE void rows4_store(const struct rows4 *rows, const struct matvec *m, size_t r, size_t cols)
{
    for (size_t c = 0; c < cols; c++) {
        float *y = m->y + c * m->y_stride + r;
        float last[4];

        if (m->rows - r >= 4) {
            vst1q_f32(y, rows->acc[c]);
            continue;
        }
        vst1q_f32(last, rows->acc[c]);
        memcpy(y, last, (m->rows - r) * sizeof(*y));
    }
}

/* -- 32 weights --------------------------------------------------------------------------- */

INLINE void matvec32_block(struct rows4 *rows, const struct blocks32 *f, size_t cols,
                           const struct act_q8_32 *const a[MATVEC_COLS], dot16_fn *dot)
{
    int32x4_t sum[MATVEC_COLS][4];
    float32x4_t d, m;

#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        int8x16_t q[2];

        f->block(rows->w[i], q);
        for (size_t c = 0; c < cols; c++)
            sum[c][i] =
                dot(dot(vdupq_n_s32(0), q[0], vld1q_s8(a[c]->q)), q[1], vld1q_s8(a[c]->q + 16));
    }
    f->scales(rows->w, &d, &m);
    for (size_t c = 0; c < cols; c++) {
        float32x4_t isum = vcvtq_f32_s32(lanes_sum4(sum[c]));
        float32x4_t v = vmulq_f32(d, isum);

        if (f->offset)
            v = vfmaq_f32(vmulq_n_f32(m, (float)a[c]->sum), d, isum);
        rows->acc[c] = vfmaq_n_f32(rows->acc[c], v, a[c]->d);
    }
}

INLINE void matvec32_cols(const struct matvec *m, const struct blocks32 *f, size_t cols,
                          dot16_fn *dot)
{
    for (size_t r = 0; r < m->rows; r += 4) {
        const struct act_q8_32 *a[MATVEC_COLS];
        struct rows4 rows;

        rows4_init(&rows, m, r);
        for (size_t c = 0; c < cols; c++)
            a[c] = (const struct act_q8_32 *)((const char *)m->act + c * m->act_stride);
        for (size_t b = 0; b < m->n / 32; b++) {
            matvec32_block(&rows, f, cols, a, dot);
            rows4_step(&rows, m, f->bytes);
            for (size_t c = 0; c < cols; c++)
                a[c]++;
        }
        rows4_store(&rows, m, r, cols);
    }
}

/* -- 256 weights ---------------------------------------------------------------------------- */

/* Four dwords that add up to isum. */
INLINE int32x4_t matvec256_isum(const struct blocks256 *f, const int8x16_t q[16],
                                const int32x4_t scale[4], const int8_t *a, dot16_fn *dot)
{
    const size_t wide = 16 / f->subs;
    int32x4_t sum = vdupq_n_s32(0);

#pragma GCC unroll 4
    for (size_t g = 0; g < f->subs / 4; g++) {
        int32x4_t p[4];

#pragma GCC unroll 4
        for (size_t i = 0; i < 4; i++) {
            size_t j = (4 * g + i) * wide;

            p[i] = dot(vdupq_n_s32(0), q[j], vld1q_s8(a + 16 * j));
            if (wide == 2)
                p[i] = dot(p[i], q[j + 1], vld1q_s8(a + 16 * j + 16));
        }
        sum = vmlaq_s32(sum, lanes_sum4(p), scale[g]);
    }
    return sum;
}

/* Four dwords that add up to msum. */
INLINE int32x4_t matvec256_msum(int8x16_t minima, const int16_t *sums)
{
    int16x8_t lo = vmovl_s8(vget_low_s8(minima)), hi = vmovl_high_s8(minima);
    int16x8_t a = vld1q_s16(sums), b = vld1q_s16(sums + 8);
    int32x4_t sum = vmull_s16(vget_low_s16(lo), vget_low_s16(a));

    sum = vmlal_high_s16(sum, lo, a);
    sum = vmlal_s16(sum, vget_low_s16(hi), vget_low_s16(b));
    return vmlal_high_s16(sum, hi, b);
}

INLINE void matvec256_block(struct rows4 *rows, const struct blocks256 *f, size_t cols,
                            const struct act_q8_256 *const a[MATVEC_COLS], dot16_fn *dot)
{
    int32x4_t sum[MATVEC_COLS][4], mins[MATVEC_COLS][4];
    float32x4_t d, m;

    for (size_t i = 0; i < 4; i++) {
        struct parts256 p;
        int32x4_t scale[4];

        f->block(rows->w[i], &p);
        lanes_widen(p.scale, scale);
        for (size_t c = 0; c < cols; c++) {
            sum[c][i] = matvec256_isum(f, p.q, scale, a[c]->q, dot);
            if (f->minima)
                mins[c][i] = matvec256_msum(p.minima, a[c]->sums);
        }
    }
    f->scales(rows->w, &d, &m);
    for (size_t c = 0; c < cols; c++) {
        float32x4_t isum = vcvtq_f32_s32(lanes_sum4(sum[c]));
        float32x4_t v = vmulq_f32(d, isum);

        if (f->minima)
            v = vfmaq_f32(vnegq_f32(vmulq_f32(m, vcvtq_f32_s32(lanes_sum4(mins[c])))), d, isum);
        rows->acc[c] = vfmaq_n_f32(rows->acc[c], v, a[c]->d);
    }
}

INLINE void matvec256_cols(const struct matvec *m, const struct blocks256 *f, size_t cols,
                           dot16_fn *dot)
{
    for (size_t r = 0; r < m->rows; r += 4) {
        const struct act_q8_256 *a[MATVEC_COLS];
        struct rows4 rows;

        rows4_init(&rows, m, r);
        for (size_t c = 0; c < cols; c++)
            a[c] = (const struct act_q8_256 *)((const char *)m->act + c * m->act_stride);
        for (size_t b = 0; b < m->n / 256; b++) {
            matvec256_block(&rows, f, cols, a, dot);
            rows4_step(&rows, m, f->bytes);
            for (size_t c = 0; c < cols; c++)
                a[c]++;
        }
        rows4_store(&rows, m, r, cols);
    }
}

/* -- the kernel of a format: one body for one column, one for more -------------------------------- */

#define MATVEC_KERNEL(fmt, tier, body, blocks)                                                     \
    void matvec_##fmt##_##tier(const struct matvec *m)                                             \
    {                                                                                              \
        if (m->cols == 1)                                                                          \
            body(m, &blocks, 1, dot16_##tier);                                                     \
        else                                                                                       \
            body(m, &blocks, m->cols, dot16_##tier);                                               \
    }
#define MATVEC32(fmt, tier)  MATVEC_KERNEL(fmt, tier, matvec32_cols, blocks32_##fmt)
#define MATVEC256(fmt, tier) MATVEC_KERNEL(fmt, tier, matvec256_cols, blocks256_##fmt)
