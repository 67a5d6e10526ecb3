/* The gated delta rule: two registers hold the columns of a row of the state. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(delta, f32, avx2);

/* A row's scaled vectors. */
struct row {
    float q[KERNELS_HEAD_MAX + 8];
    float k[KERNELS_HEAD_MAX + 8];
    float seen[KERNELS_HEAD_MAX + 8]; /* k * decay */
};

static void scale_row(const struct delta *d, size_t r, struct row *row)
{
    const float *q = d->q + r * d->q_stride, *k = d->k + r * d->k_stride;
    const float *decay = d->decay + r * d->decay_stride;

    for (size_t i = 0; i < d->n; i += 8) {
        size_t left = d->n - i;
        __m256 kk = _mm256_mul_ps(load8(k + i, left), _mm256_set1_ps(d->k_scale));
        __m256 g = d->decay_step ? load8(decay + i, left) : _mm256_set1_ps(*decay);

        _mm256_storeu_ps(row->q + i, _mm256_mul_ps(load8(q + i, left), _mm256_set1_ps(d->q_scale)));
        _mm256_storeu_ps(row->k + i, kk);
        _mm256_storeu_ps(row->seen + i, _mm256_mul_ps(kk, g));
    }
}

static inline __m256 sum4(const __m256 p[4])
{
    return _mm256_add_ps(_mm256_add_ps(p[0], p[2]), _mm256_add_ps(p[1], p[3]));
}

static inline void see(const float *s, float seen, __m256 *p)
{
    *p = _mm256_fmadd_ps(_mm256_loadu_ps(s), _mm256_set1_ps(seen), *p);
}

static inline void step(float *s, float g, float k, float q, __m256 diff, __m256 *p)
{
    __m256 x = _mm256_mul_ps(_mm256_set1_ps(k), diff);

    x = _mm256_fmadd_ps(_mm256_loadu_ps(s), _mm256_set1_ps(g), x);
    _mm256_storeu_ps(s, x);
    *p = _mm256_fmadd_ps(x, _mm256_set1_ps(q), *p);
}

/* Eight columns, from `at` on. */
static __m256 diff_of(const struct delta *d, size_t r, const struct row *row, size_t at)
{
    __m256 p[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                   _mm256_setzero_ps()};
    __m256 v = load8(d->v + r * d->v_stride + (at < d->cols ? at : 0), left8(d->cols, at));
    const float *s = d->state + at;
    size_t i = 0;

    for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS) {
        see(s, row->seen[i], &p[0]);
        see(s + KERNELS_COLS, row->seen[i + 1], &p[1]);
        see(s + 2 * KERNELS_COLS, row->seen[i + 2], &p[2]);
        see(s + 3 * KERNELS_COLS, row->seen[i + 3], &p[3]);
    }
    for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS)
        see(s, row->seen[i], &p[j]);
    return _mm256_mul_ps(_mm256_set1_ps(math_sigmoid(d->rate[r * d->rate_stride])),
                         _mm256_sub_ps(v, sum4(p)));
}

static void half_row(const struct delta *d, size_t r, const struct row *row, size_t at)
{
    const float *g = d->decay + r * d->decay_stride;
    __m256 p[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                   _mm256_setzero_ps()};
    __m256 diff = diff_of(d, r, row, at);
    size_t i = 0, go = d->decay_step;
    float *s = d->state + at;

    for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS, g += 4 * go) {
        step(s, g[0], row->k[i], row->q[i], diff, &p[0]);
        step(s + KERNELS_COLS, g[go], row->k[i + 1], row->q[i + 1], diff, &p[1]);
        step(s + 2 * KERNELS_COLS, g[2 * go], row->k[i + 2], row->q[i + 2], diff, &p[2]);
        step(s + 3 * KERNELS_COLS, g[3 * go], row->k[i + 3], row->q[i + 3], diff, &p[3]);
    }
    for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS, g += go)
        step(s, *g, row->k[i], row->q[i], diff, &p[j]);
    if (at < d->cols)
        store8(d->o + r * d->o_stride + at, d->cols - at, sum4(p));
}

void delta_f32_avx2(const struct delta *d)
{
    struct row row;

    for (size_t r = 0; r < d->rows; r++) {
        scale_row(d, r, &row);
        half_row(d, r, &row, 0);
        half_row(d, r, &row, 8);
    }
}
