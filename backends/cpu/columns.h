/*
 * columns - the recurrent kernels (kernels.h: delta, ssm, wkv) over any vector.
 *
 * A vector holds VEC_WIDTH of the KERNELS_COLS columns of a row of the state,
 * and the rows pass one by one, so every element sees the steps of the scalar
 * twin in its order, whatever the width.
 *
 * A tier includes this after the header that defines the vector type vec and
 * VEC_WIDTH, and, on vec,
 *
 *   vec_load, vec_store          the first `left` floats at p (at least one to store), and zeros
 *   vec_loadu, vec_storeu        all of them
 *   vec_set1, vec_zero           one float in all lanes; zeros
 *   vec_mul, vec_add, vec_sub    of two; vec_fma(a, b, c) = a * b + c
 *   vec_exp                      math_exp()
 *
 * and makes its kernels with delta_columns(), ssm_columns() and wkv_columns().
 */
#pragma once

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

#ifdef VEC_WIDTH /* the rest is a tier's: by itself this header has no vector */

/* Columns from `at` on that are there. */
static inline size_t col_left(size_t cols, size_t at)
{
    return at < cols ? cols - at : 0;
}

static inline void col_clear(vec p[4])
{
    for (size_t j = 0; j < 4; j++)
        p[j] = vec_zero();
}

static inline vec col_sum4(const vec p[4])
{
    return vec_add(vec_add(p[0], p[2]), vec_add(p[1], p[3]));
}

/* Adds what one row of the state has of what is looked for. */
static inline void col_see(const float *s, float seen, vec *p)
{
    *p = vec_fma(vec_loadu(s), vec_set1(seen), *p);
}

/* -- the gated delta rule ----------------------------------------------------------------------- */

/* A row's scaled vectors. */
struct delta_row {
    float q[KERNELS_HEAD_MAX + VEC_WIDTH];
    float k[KERNELS_HEAD_MAX + VEC_WIDTH];
    float seen[KERNELS_HEAD_MAX + VEC_WIDTH]; /* k * decay */
};

static inline void delta_scale(const struct delta *d, size_t r, struct delta_row *row)
{
    const float *q = d->q + r * d->q_stride, *k = d->k + r * d->k_stride;
    const float *decay = d->decay + r * d->decay_stride;

    for (size_t i = 0; i < d->n; i += VEC_WIDTH) {
        size_t left = d->n - i;
        vec kk = vec_mul(vec_load(k + i, left), vec_set1(d->k_scale));
        vec g = d->decay_step ? vec_load(decay + i, left) : vec_set1(*decay);

        vec_storeu(row->q + i, vec_mul(vec_load(q + i, left), vec_set1(d->q_scale)));
        vec_storeu(row->k + i, kk);
        vec_storeu(row->seen + i, vec_mul(kk, g));
    }
}

/* d of kernels.h for the columns from `at` on. */
static inline vec delta_diff(const struct delta *d, size_t r, const struct delta_row *row,
                             size_t at)
{
    size_t left = col_left(d->cols, at), i = 0;
    const float *s = d->state + at;
    vec v = vec_load(d->v + r * d->v_stride + (left ? at : 0), left), p[4];

    col_clear(p);
    for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS) {
        col_see(s, row->seen[i], &p[0]);
        col_see(s + KERNELS_COLS, row->seen[i + 1], &p[1]);
        col_see(s + 2 * KERNELS_COLS, row->seen[i + 2], &p[2]);
        col_see(s + 3 * KERNELS_COLS, row->seen[i + 3], &p[3]);
    }
    for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS)
        col_see(s, row->seen[i], &p[j]);
    return vec_mul(vec_set1(math_sigmoid(d->rate[r * d->rate_stride])), vec_sub(v, col_sum4(p)));
}

static inline void delta_step(float *s, float g, float k, float q, vec diff, vec *p)
{
    vec x = vec_fma(vec_loadu(s), vec_set1(g), vec_mul(vec_set1(k), diff));

    vec_storeu(s, x);
    *p = vec_fma(x, vec_set1(q), *p);
}

static inline void delta_part(const struct delta *d, size_t r, const struct delta_row *row,
                              size_t at)
{
    const float *g = d->decay + r * d->decay_stride;
    size_t left = col_left(d->cols, at), i = 0, go = d->decay_step;
    vec diff = delta_diff(d, r, row, at), p[4];
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
        vec_store(d->o + r * d->o_stride + at, left, col_sum4(p));
}

static inline void delta_columns(const struct delta *d)
{
    struct delta_row row;

    for (size_t r = 0; r < d->rows; r++) {
        delta_scale(d, r, &row);
        for (size_t at = 0; at < KERNELS_COLS; at += VEC_WIDTH)
            delta_part(d, r, &row, at);
    }
}

/* -- the selective state space ------------------------------------------------------------------ */

static inline void ssm_step(float *h, vec decay, float b, float c, vec in, vec *p)
{
    vec x = vec_fma(vec_loadu(h), decay, vec_mul(vec_set1(b), in));

    vec_storeu(h, x);
    *p = vec_fma(x, vec_set1(c), *p);
}

static inline vec ssm_decay(const struct ssm *s, size_t i, size_t at, vec dt, vec one)
{
    if (!s->a)
        return one;
    return vec_exp(vec_mul(dt, vec_loadu(s->a + i * KERNELS_COLS + at)));
}

static inline void ssm_part(const struct ssm *s, size_t r, size_t at)
{
    const float *b = s->b + r * s->b_stride, *c = s->c + r * s->c_stride;
    const float *step_of = s->dt + r * s->dt_stride;
    size_t left = col_left(s->cols, at), from = left ? at : 0, i = 0;
    vec x = vec_load(s->x + r * s->x_stride + from, left);
    vec dt = s->dt_each ? vec_load(step_of + from, left) : vec_set1(*step_of);
    vec one = s->a ? dt : vec_set1(s->decay[r * s->decay_stride]);
    vec in = vec_mul(x, dt), p[4];
    float *h = s->state + at;

    col_clear(p);
    for (; i + 4 <= s->n; i += 4)
        for (size_t j = 0; j < 4; j++, h += KERNELS_COLS)
            ssm_step(h, ssm_decay(s, i + j, at, dt, one), b[i + j], c[i + j], in, &p[j]);
    for (size_t j = 0; i < s->n; i++, j++, h += KERNELS_COLS)
        ssm_step(h, ssm_decay(s, i, at, dt, one), b[i], c[i], in, &p[j]);
    if (left)
        vec_store(s->y + r * s->y_stride + at, left, vec_fma(x, vec_loadu(s->d + at), col_sum4(p)));
}

static inline void ssm_columns(const struct ssm *s)
{
    for (size_t r = 0; r < s->rows; r++)
        for (size_t at = 0; at < KERNELS_COLS; at += VEC_WIDTH)
            ssm_part(s, r, at);
}

/* -- RWKV-7's rule ------------------------------------------------------------------------------ */

static inline void wkv_step(const struct wkv *w, size_t i, size_t at, vec a, vec v, vec *p)
{
    float *s = w->state + i * KERNELS_COLS + at;
    vec x = vec_fma(a, vec_set1(w->write[i]), vec_mul(v, vec_set1(w->k[i])));

    x = vec_fma(vec_loadu(s), vec_set1(w->decay[i]), x);
    vec_storeu(s, x);
    *p = vec_fma(x, vec_set1(w->r[i]), *p);
}

static inline void wkv_part(const struct wkv *w, size_t at)
{
    size_t left = col_left(w->cols, at), i = 0;
    vec v = vec_load(w->v + (left ? at : 0), left), p[4], a;
    const float *s = w->state + at;

    col_clear(p);
    for (; i + 4 <= w->n; i += 4)
        for (size_t j = 0; j < 4; j++, s += KERNELS_COLS)
            col_see(s, w->seen[i + j], &p[j]);
    for (size_t j = 0; i < w->n; i++, j++, s += KERNELS_COLS)
        col_see(s, w->seen[i], &p[j]);
    a = col_sum4(p);
    col_clear(p);
    for (i = 0; i + 4 <= w->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            wkv_step(w, i + j, at, a, v, &p[j]);
    for (size_t j = 0; i < w->n; i++, j++)
        wkv_step(w, i, at, a, v, &p[j]);
    if (left)
        vec_store(w->o + at, left, col_sum4(p));
}

static inline void wkv_columns(const struct wkv *w)
{
    for (size_t at = 0; at < KERNELS_COLS; at += VEC_WIDTH)
        wkv_part(w, at);
}

#endif
