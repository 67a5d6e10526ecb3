/* The gated delta rule: a register holds the columns of a row of the state. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(delta, f32, avx512);

/* A row's scaled vectors. */
struct row {
    float q[KERNELS_HEAD_MAX + 16];
    float k[KERNELS_HEAD_MAX + 16];
    float seen[KERNELS_HEAD_MAX + 16]; /* k * decay */
};

static void scale_row(const struct delta *d, size_t r, struct row *row)
{
    const float *q = d->q + r * d->q_stride, *k = d->k + r * d->k_stride;
    const float *decay = d->decay + r * d->decay_stride;

    for (size_t i = 0; i < d->n; i += 16) {
        __mmask16 m = tail16(d->n - i);
        __m512 kk = _mm512_mul_ps(_mm512_maskz_loadu_ps(m, k + i), _mm512_set1_ps(d->k_scale));
        __m512 g = d->decay_step ? _mm512_maskz_loadu_ps(m, decay + i) : _mm512_set1_ps(*decay);

        _mm512_storeu_ps(
            row->q + i, _mm512_mul_ps(_mm512_maskz_loadu_ps(m, q + i), _mm512_set1_ps(d->q_scale)));
        _mm512_storeu_ps(row->k + i, kk);
        _mm512_storeu_ps(row->seen + i, _mm512_mul_ps(kk, g));
    }
}

static inline __m512 sum4(const __m512 p[4])
{
    return _mm512_add_ps(_mm512_add_ps(p[0], p[2]), _mm512_add_ps(p[1], p[3]));
}

static inline void see(const float *s, float seen, __m512 *p)
{
    *p = _mm512_fmadd_ps(_mm512_loadu_ps(s), _mm512_set1_ps(seen), *p);
}

static inline void step(float *s, float g, float k, float q, __m512 diff, __m512 *p)
{
    __m512 x = _mm512_mul_ps(_mm512_set1_ps(k), diff);

    x = _mm512_fmadd_ps(_mm512_loadu_ps(s), _mm512_set1_ps(g), x);
    _mm512_storeu_ps(s, x);
    *p = _mm512_fmadd_ps(x, _mm512_set1_ps(q), *p);
}

static __m512 diff_of(const struct delta *d, size_t r, const struct row *row)
{
    const __mmask16 m = tail16(d->cols);
    __m512 p[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                   _mm512_setzero_ps()};
    __m512 v = _mm512_maskz_loadu_ps(m, d->v + r * d->v_stride);
    const float *s = d->state;
    size_t i = 0;

    for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS) {
        see(s, row->seen[i], &p[0]);
        see(s + KERNELS_COLS, row->seen[i + 1], &p[1]);
        see(s + 2 * KERNELS_COLS, row->seen[i + 2], &p[2]);
        see(s + 3 * KERNELS_COLS, row->seen[i + 3], &p[3]);
    }
    for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS)
        see(s, row->seen[i], &p[j]);
    return _mm512_mul_ps(_mm512_set1_ps(math_sigmoid(d->rate[r * d->rate_stride])),
                         _mm512_sub_ps(v, sum4(p)));
}

void delta_f32_avx512(const struct delta *d)
{
    const __mmask16 m = tail16(d->cols);
    struct row row;

    for (size_t r = 0; r < d->rows; r++) {
        const float *g = d->decay + r * d->decay_stride;
        __m512 p[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                       _mm512_setzero_ps()};
        size_t i = 0, go = d->decay_step;
        float *s = d->state;
        __m512 diff;

        scale_row(d, r, &row);
        diff = diff_of(d, r, &row);
        for (; i + 4 <= d->n; i += 4, s += 4 * KERNELS_COLS, g += 4 * go) {
            step(s, g[0], row.k[i], row.q[i], diff, &p[0]);
            step(s + KERNELS_COLS, g[go], row.k[i + 1], row.q[i + 1], diff, &p[1]);
            step(s + 2 * KERNELS_COLS, g[2 * go], row.k[i + 2], row.q[i + 2], diff, &p[2]);
            step(s + 3 * KERNELS_COLS, g[3 * go], row.k[i + 3], row.q[i + 3], diff, &p[3]);
        }
        for (size_t j = 0; i < d->n; i++, j++, s += KERNELS_COLS, g += go)
            step(s, *g, row.k[i], row.q[i], diff, &p[j]);
        _mm512_mask_storeu_ps(d->o + r * d->o_stride, m, sum4(p));
    }
}
