/* RWKV-7's rule: a register holds the columns of a row of the state. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(wkv, f32, avx512);

static inline __m512 sum4(const __m512 p[4])
{
    return _mm512_add_ps(_mm512_add_ps(p[0], p[2]), _mm512_add_ps(p[1], p[3]));
}

static inline void see(const struct wkv *w, size_t i, __m512 *p)
{
    *p = _mm512_fmadd_ps(_mm512_loadu_ps(w->state + i * KERNELS_COLS), _mm512_set1_ps(w->seen[i]),
                         *p);
}

static inline void step(const struct wkv *w, size_t i, __m512 a, __m512 v, __m512 *p)
{
    float *s = w->state + i * KERNELS_COLS;
    __m512 x = _mm512_mul_ps(v, _mm512_set1_ps(w->k[i]));

    x = _mm512_fmadd_ps(a, _mm512_set1_ps(w->write[i]), x);
    x = _mm512_fmadd_ps(_mm512_loadu_ps(s), _mm512_set1_ps(w->decay[i]), x);
    _mm512_storeu_ps(s, x);
    *p = _mm512_fmadd_ps(x, _mm512_set1_ps(w->r[i]), *p);
}

void wkv_f32_avx512(const struct wkv *w)
{
    const __mmask16 m = tail16(w->cols);
    __m512 v = _mm512_maskz_loadu_ps(m, w->v);
    __m512 p[4], a;
    size_t i = 0;

    for (int j = 0; j < 4; j++)
        p[j] = _mm512_setzero_ps();
    for (; i + 4 <= w->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            see(w, i + j, &p[j]);
    for (size_t j = 0; i < w->n; i++, j++)
        see(w, i, &p[j]);
    a = sum4(p);
    for (int j = 0; j < 4; j++)
        p[j] = _mm512_setzero_ps();
    for (i = 0; i + 4 <= w->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            step(w, i + j, a, v, &p[j]);
    for (size_t j = 0; i < w->n; i++, j++)
        step(w, i, a, v, &p[j]);
    _mm512_mask_storeu_ps(w->o, m, sum4(p));
}
