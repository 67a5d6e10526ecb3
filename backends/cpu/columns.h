/*
 * columns - the recurrent kernels (kernels.h: delta, ssm) over any vector.
 *
 * A vector holds COL_WIDTH of the KERNELS_COLS columns of a row of the state,
 * and the rows pass one by one, so every element sees the steps of the scalar
 * twin in its order, whatever the width.
 *
 * A tier includes this after it has defined the vector type col and COL_WIDTH,
 * and, on col,
 *
 *   col_load, col_store          the first `left` floats at p (at least one to store), and zeros
 *   col_loadu, col_storeu        all of them
 *   col_set1, col_zero           one float in all lanes; zeros
 *   col_mul, col_add, col_sub    of two; col_fma(a, b, c) = a * b + c
 *   col_exp                      math_exp()
 *
 * and makes its kernels with delta_columns() and ssm_columns().
 */
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

#ifdef COL_WIDTH /* the rest is a tier's: by itself this header has no vector */

/* Columns from `at` on that are there. */
static inline size_t col_left(size_t cols, size_t at)
{
    return at < cols ? cols - at : 0;
}

static inline void col_clear(col p[4])
{
    for (size_t j = 0; j < 4; j++)
        p[j] = col_zero();
}

static inline col col_sum4(const col p[4])
{
    return col_add(col_add(p[0], p[2]), col_add(p[1], p[3]));
}

/* -- the gated delta rule ----------------------------------------------------------------------- */

/* A row's scaled vectors. */
struct delta_row {
    float q[KERNELS_HEAD_MAX + COL_WIDTH];
    float k[KERNELS_HEAD_MAX + COL_WIDTH];
    float seen[KERNELS_HEAD_MAX + COL_WIDTH]; /* k * decay */
};

static inline void delta_scale(const struct delta *d, size_t r, struct delta_row *row)
{
    const float *q = d->q + r * d->q_stride, *k = d->k + r * d->k_stride;
    const float *decay = d->decay + r * d->decay_stride;

    for (size_t i = 0; i < d->n; i += COL_WIDTH) {
        size_t left = d->n - i;
        col kk = col_mul(col_load(k + i, left), col_set1(d->k_scale));
        col g = d->decay_step ? col_load(decay + i, left) : col_set1(*decay);

        col_storeu(row->q + i, col_mul(col_load(q + i, left), col_set1(d->q_scale)));
        col_storeu(row->k + i, kk);
        col_storeu(row->seen + i, col_mul(kk, g));
    }
}

static inline void delta_see(const float *s, float seen, col *p)
{
    *p = col_fma(col_loadu(s), col_set1(seen), *p);
}

/* d of kernels.h for the columns from `at` on. */
static inline col delta_diff(const struct delta *d, size_t r, const struct delta_row *row,
                             size_t at)
{
    size_t left = col_left(d->cols, at), i = 0;
    const float *s = d->state + at;
    col v = col_load(d->v + r * d->v_stride + (left ? at : 0), left), p[4];

    col_clear(p);
    for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS) {
        delta_see(s, row->seen[i], &p[0]);
        delta_see(s + KERNELS_COLS, row->seen[i + 1], &p[1]);
        delta_see(s + 2 * KERNELS_COLS, row->seen[i + 2], &p[2]);
        delta_see(s + 3 * KERNELS_COLS, row->seen[i + 3], &p[3]);
    }
    for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS)
        delta_see(s, row->seen[i], &p[j]);
    return col_mul(col_set1(math_sigmoid(d->rate[r * d->rate_stride])), col_sub(v, col_sum4(p)));
}

static inline void delta_step(float *s, float g, float k, float q, col diff, col *p)
{
    col x = col_fma(col_loadu(s), col_set1(g), col_mul(col_set1(k), diff));

    col_storeu(s, x);
    *p = col_fma(x, col_set1(q), *p);
}

static inline void delta_part(const struct delta *d, size_t r, const struct delta_row *row,
                              size_t at)
{
    const float *g = d->decay + r * d->decay_stride;
    size_t left = col_left(d->cols, at), i = 0, go = d->decay_step;
    col diff = delta_diff(d, r, row, at), p[4];
    float *s = d->state + at;

    col_clear(p);
    for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS, g += 4 * go) {
        delta_step(s, g[0], row->k[i], row->q[i], diff, &p[0]);
        delta_step(s + KERNELS_COLS, g[go], row->k[i + 1], row->q[i + 1], diff, &p[1]);
        delta_step(s + 2 * KERNELS_COLS, g[2 * go], row->k[i + 2], row->q[i + 2], diff, &p[2]);
        delta_step(s + 3 * KERNELS_COLS, g[3 * go], row->k[i + 3], row->q[i + 3], diff, &p[3]);
    }
    for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS, g += go)
        delta_step(s, *g, row->k[i], row->q[i], diff, &p[j]);
    if (left)
        col_store(d->o + r * d->o_stride + at, left, col_sum4(p));
}

static inline void delta_columns(const struct delta *d)
{
    struct delta_row row;

    for (size_t r = 0; r < d->rows; r++) {
        delta_scale(d, r, &row);
        for (size_t at = 0; at < KERNELS_COLS; at += COL_WIDTH)
            delta_part(d, r, &row, at);
    }
}

/* -- the selective state space ------------------------------------------------------------------ */

static inline void ssm_step(float *h, col decay, float b, float c, col in, col *p)
{
    col x = col_fma(col_loadu(h), decay, col_mul(col_set1(b), in));

    col_storeu(h, x);
    *p = col_fma(x, col_set1(c), *p);
}

static inline col ssm_decay(const struct ssm *s, size_t i, size_t at, col dt, col one)
{
    if (!s->a)
        return one;
    return col_exp(col_mul(dt, col_loadu(s->a + i * KERNELS_COLS + at)));
}

static inline void ssm_part(const struct ssm *s, size_t r, size_t at)
{
    const float *b = s->b + r * s->b_stride, *c = s->c + r * s->c_stride;
    const float *step_of = s->dt + r * s->dt_stride;
    size_t left = col_left(s->cols, at), from = left ? at : 0, i = 0;
    col x = col_load(s->x + r * s->x_stride + from, left);
    col dt = s->dt_each ? col_load(step_of + from, left) : col_set1(*step_of);
    col one = s->a ? dt : col_set1(s->decay[r * s->decay_stride]);
    col in = col_mul(x, dt), p[4];
    float *h = s->state + at;

    col_clear(p);
    for (; i + 4 <= s->n; i += 4)
        for (size_t j = 0; j < 4; j++, h += KERNELS_COLS)
            ssm_step(h, ssm_decay(s, i + j, at, dt, one), b[i + j], c[i + j], in, &p[j]);
    for (size_t j = 0; i < s->n; i++, j++, h += KERNELS_COLS)
        ssm_step(h, ssm_decay(s, i, at, dt, one), b[i], c[i], in, &p[j]);
    if (left)
        col_store(s->y + r * s->y_stride + at, left, col_fma(x, col_loadu(s->d + at), col_sum4(p)));
}

static inline void ssm_columns(const struct ssm *s)
{
    for (size_t r = 0; r < s->rows; r++)
        for (size_t at = 0; at < KERNELS_COLS; at += COL_WIDTH)
            ssm_part(s, r, at);
}

#endif
