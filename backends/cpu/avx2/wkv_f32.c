/* RWKV-7's rule: two registers hold the columns of a row of the state. */
#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(wkv, f32, avx2);

static inline __m256 sum4(const __m256 p[4])
{
    return _mm256_add_ps(_mm256_add_ps(p[0], p[2]), _mm256_add_ps(p[1], p[3]));
}

static inline void see(const struct wkv *w, size_t i, size_t at, __m256 *p)
{
    *p = _mm256_fmadd_ps(_mm256_loadu_ps(w->state + i * KERNELS_COLS + at),
                         _mm256_set1_ps(w->seen[i]), *p);
}

static inline void step(const struct wkv *w, size_t i, size_t at, __m256 a, __m256 v, __m256 *p)
{
    float *s = w->state + i * KERNELS_COLS + at;
    __m256 x = _mm256_mul_ps(v, _mm256_set1_ps(w->k[i]));

    x = _mm256_fmadd_ps(a, _mm256_set1_ps(w->write[i]), x);
    x = _mm256_fmadd_ps(_mm256_loadu_ps(s), _mm256_set1_ps(w->decay[i]), x);
    _mm256_storeu_ps(s, x);
    *p = _mm256_fmadd_ps(x, _mm256_set1_ps(w->r[i]), *p);
}

/* Eight columns, from `at` on. */
static void half(const struct wkv *w, size_t at)
{
    __m256 v = load8(w->v + (at < w->cols ? at : 0), left8(w->cols, at));
    __m256 p[4], a;
    size_t i = 0;

    for (int j = 0; j < 4; j++)
        p[j] = _mm256_setzero_ps();
    for (; i + 4 <= w->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            see(w, i + j, at, &p[j]);
    for (size_t j = 0; i < w->n; i++, j++)
        see(w, i, at, &p[j]);
    a = sum4(p);
    for (int j = 0; j < 4; j++)
        p[j] = _mm256_setzero_ps();
    for (i = 0; i + 4 <= w->n; i += 4)
        for (size_t j = 0; j < 4; j++)
            step(w, i + j, at, a, v, &p[j]);
    for (size_t j = 0; i < w->n; i++, j++)
        step(w, i, at, a, v, &p[j]);
    if (at < w->cols)
        store8(w->o + at, w->cols - at, sum4(p));
}

void wkv_f32_avx2(const struct wkv *w)
{
    half(w, 0);
    half(w, 8);
}
