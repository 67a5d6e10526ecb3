/*
 * matvec_scalar - the arithmetic of all matrix products, once.
 *
 * The scalar twin IS the definition of a product: every tier gives its bits
 * (kernels.h has the fixed orders).  A matvec_FORMAT.c names the shape of its
 * format and the bound of its integers; the shapes are here:
 *
 *   plain     f32 kinds: sixteen partial sums by index mod 16, then the tree
 *   one       one scale: per 32 weights    acc = fma(d_a, d_w * f(isum), acc)
 *   offset    scale and offset: per 32     acc = fma(d_a, fma(d_w, f(isum), m_w * f(asum)), acc)
 *   scales    scales of 16: per 256        acc = fma(d_a, d_w * f(isum), acc)
 *   minima    scales and minima: per 256   acc = fma(d_a, fma(d_w, f(isum), -(m_w * f(msum))), acc)
 *
 * isum, asum and msum are exact integers and may be summed in any order; f()
 * rounds an int32 to the nearest f32 once.  A row is unpacked once and meets
 * up to four columns, each with an accumulator of its own, so a column's bits
 * do not depend on its neighbours.
 */
#pragma once

#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/formats/unpack.h"

#define MATVEC_COLS 4

static inline const void *matvec_row(const struct matvec *m, size_t r)
{
    return (const uint8_t *)m->w + r * m->row_bytes;
}

static inline const void *matvec_act(const struct matvec *m, size_t c)
{
    return (const uint8_t *)m->act + c * m->act_stride;
}

static inline void matvec_store(const struct matvec *m, size_t r, const float acc[MATVEC_COLS])
{
    for (size_t c = 0; c < m->cols; c++)
        m->y[c * m->y_stride + r] = acc[c];
}

/* Σ q * a over n weights. */
static inline int32_t matvec_isum(const int8_t *q, const int8_t *a, int n)
{
    int32_t sum = 0;

    for (int i = 0; i < n; i++)
        sum += q[i] * a[i];
    return sum;
}

static inline void matvec_plain(const struct matvec *m, const struct format *f)
{
    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float p[MATVEC_COLS][16] = {0}, acc[MATVEC_COLS];

        for (size_t k = 0; k < m->n; k += 16, w += 16 * f->block_bytes) {
            size_t lanes = m->n - k < 16 ? m->n - k : 16;
            float wide[16];

            f->to_f32(w, wide, lanes);
            for (size_t c = 0; c < m->cols; c++) {
                const float *x = (const float *)matvec_act(m, c) + k;

                for (size_t i = 0; i < lanes; i++)
                    p[c][i] = fmaf(wide[i], x[i], p[c][i]);
            }
        }
        for (size_t c = 0; c < m->cols; c++)
            acc[c] = kernels_tree16(p[c]);
        matvec_store(m, r, acc);
    }
}

/* A weight block of 64 or 128 meets two or four activation blocks, in order. */
static inline void matvec_one(const struct matvec *m, unpack_fn *unpack, size_t block_elems,
                              size_t block_bytes)
{
    struct unpacked u;

    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t k = 0; k < m->n; k += block_elems, w += block_bytes) {
            unpack(w, &u);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_32 *a = (const struct act_q8_32 *)matvec_act(m, c) + k / 32;

                for (size_t i = 0; i < block_elems; i += 32, a++) {
                    int32_t isum = matvec_isum(u.q + i, a->q, 32);

                    acc[c] = fmaf(a->d, u.d * (float)isum, acc[c]);
                }
            }
        }
        matvec_store(m, r, acc);
    }
}

static inline void matvec_offset(const struct matvec *m, unpack_fn *unpack, size_t block_bytes)
{
    struct unpacked u;

    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t k = 0; k < m->n; k += 32, w += block_bytes) {
            unpack(w, &u);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_32 *a = (const struct act_q8_32 *)matvec_act(m, c) + k / 32;
                int32_t isum = matvec_isum(u.q, a->q, 32);

                acc[c] = fmaf(a->d, fmaf(u.d, (float)isum, u.m * (float)a->sum), acc[c]);
            }
        }
        matvec_store(m, r, acc);
    }
}

static inline void matvec_scales(const struct matvec *m, unpack_fn *unpack, size_t block_bytes)
{
    struct unpacked u;

    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t k = 0; k < m->n; k += 256, w += block_bytes) {
            unpack(w, &u);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_256 *a = (const struct act_q8_256 *)matvec_act(m, c) + k / 256;
                int32_t isum = 0;

                for (int j = 0; j < 16; j++)
                    isum += u.sc[j] * matvec_isum(u.q + 16 * j, a->q + 16 * j, 16);
                acc[c] = fmaf(a->d, u.d * (float)isum, acc[c]);
            }
        }
        matvec_store(m, r, acc);
    }
}

static inline void matvec_minima(const struct matvec *m, unpack_fn *unpack, size_t block_bytes)
{
    struct unpacked u;

    for (size_t r = 0; r < m->rows; r++) {
        const uint8_t *w = matvec_row(m, r);
        float acc[MATVEC_COLS] = {0};

        for (size_t k = 0; k < m->n; k += 256, w += block_bytes) {
            unpack(w, &u);
            for (size_t c = 0; c < m->cols; c++) {
                const struct act_q8_256 *a = (const struct act_q8_256 *)matvec_act(m, c) + k / 256;
                int32_t isum = 0, msum = 0;

                for (int j = 0; j < 16; j++) {
                    isum += u.sc[j] * matvec_isum(u.q + 16 * j, a->q + 16 * j, 16);
                    msum += u.mins[j] * a->sums[j];
                }
                acc[c] = fmaf(a->d, fmaf(u.d, (float)isum, -(u.m * (float)msum)), acc[c]);
            }
        }
        matvec_store(m, r, acc);
    }
}
