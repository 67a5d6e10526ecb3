/* A selective state space: a register holds the columns of a row of the state. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(ssm, f32, avx512);

static inline void step(float *h, __m512 decay, float b, float c, __m512 in, __m512 *p)
{
    __m512 x = _mm512_mul_ps(_mm512_set1_ps(b), in);

    x = _mm512_fmadd_ps(_mm512_loadu_ps(h), decay, x);
    _mm512_storeu_ps(h, x);
    *p = _mm512_fmadd_ps(x, _mm512_set1_ps(c), *p);
}

static inline __m512 decay_at(const struct ssm *s, size_t i, __m512 dt, __m512 one)
{
    if (!s->a)
        return one;
    return exp16(_mm512_mul_ps(dt, _mm512_loadu_ps(s->a + i * KERNELS_COLS)));
}

void ssm_f32_avx512(const struct ssm *s)
{
    const __mmask16 m = tail16(s->cols);

    for (size_t r = 0; r < s->rows; r++) {
        const float *b = s->b + r * s->b_stride, *c = s->c + r * s->c_stride;
        const float *step_of = s->dt + r * s->dt_stride;
        __m512 x = _mm512_maskz_loadu_ps(m, s->x + r * s->x_stride);
        __m512 dt = s->dt_each ? _mm512_maskz_loadu_ps(m, step_of) : _mm512_set1_ps(*step_of);
        __m512 one = s->a ? dt : _mm512_set1_ps(s->decay[r * s->decay_stride]);
        __m512 in = _mm512_mul_ps(x, dt);
        __m512 p[4] = {_mm512_setzero_ps(), _mm512_setzero_ps(), _mm512_setzero_ps(),
                       _mm512_setzero_ps()};
        float *h = s->state;
        size_t i = 0;

        for (; i + 4 <= s->n; i += 4)
            for (size_t j = 0; j < 4; j++, h += KERNELS_COLS)
                step(h, decay_at(s, i + j, dt, one), b[i + j], c[i + j], in, &p[j]);
        for (size_t j = 0; i < s->n; i++, j++, h += KERNELS_COLS)
            step(h, decay_at(s, i, dt, one), b[i], c[i], in, &p[j]);
        p[0] = _mm512_add_ps(_mm512_add_ps(p[0], p[2]), _mm512_add_ps(p[1], p[3]));
        _mm512_mask_storeu_ps(s->y + r * s->y_stride, m,
                              _mm512_fmadd_ps(x, _mm512_loadu_ps(s->d), p[0]));
    }
}
