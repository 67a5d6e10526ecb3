/* A selective state space: two registers hold the columns of a row of the state. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(ssm, f32, avx2);

static inline void step(float *h, __m256 decay, float b, float c, __m256 in, __m256 *p)
{
    __m256 x = _mm256_mul_ps(_mm256_set1_ps(b), in);

    x = _mm256_fmadd_ps(_mm256_loadu_ps(h), decay, x);
    _mm256_storeu_ps(h, x);
    *p = _mm256_fmadd_ps(x, _mm256_set1_ps(c), *p);
}

static inline __m256 decay_at(const struct ssm *s, size_t i, size_t at, __m256 dt, __m256 one)
{
    if (!s->a)
        return one;
    return exp8(_mm256_mul_ps(dt, _mm256_loadu_ps(s->a + i * KERNELS_COLS + at)));
}

/* Eight columns, from `at` on. */
static void half_row(const struct ssm *s, size_t r, size_t at)
{
    const float *b = s->b + r * s->b_stride, *c = s->c + r * s->c_stride;
    const float *step_of = s->dt + r * s->dt_stride;
    size_t left = left8(s->cols, at), from = left ? at : 0;
    __m256 x = load8(s->x + r * s->x_stride + from, left);
    __m256 dt = s->dt_each ? load8(step_of + from, left) : _mm256_set1_ps(*step_of);
    __m256 one = s->a ? dt : _mm256_set1_ps(s->decay[r * s->decay_stride]);
    __m256 in = _mm256_mul_ps(x, dt);
    __m256 p[4] = {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(),
                   _mm256_setzero_ps()};
    float *h = s->state + at;
    size_t i = 0;

    for (; i + 4 <= s->n; i += 4)
        for (size_t j = 0; j < 4; j++, h += KERNELS_COLS)
            step(h, decay_at(s, i + j, at, dt, one), b[i + j], c[i + j], in, &p[j]);
    for (size_t j = 0; i < s->n; i++, j++, h += KERNELS_COLS)
        step(h, decay_at(s, i, at, dt, one), b[i], c[i], in, &p[j]);
    p[0] = _mm256_add_ps(_mm256_add_ps(p[0], p[2]), _mm256_add_ps(p[1], p[3]));
    if (left)
        store8(s->y + r * s->y_stride + at, left,
               _mm256_fmadd_ps(x, _mm256_loadu_ps(s->d + at), p[0]));
}

void ssm_f32_avx2(const struct ssm *s)
{
    for (size_t r = 0; r < s->rows; r++) {
        half_row(s, r, 0);
        half_row(s, r, 8);
    }
}
