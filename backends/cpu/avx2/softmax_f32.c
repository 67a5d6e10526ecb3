/* Softmax of a row. */
#include <math.h>

#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(softmax, f32, avx2);

/* exp(x - m) of up to eight elements, stored and given back; lanes past n are zero. */
static inline __m256 exps(const float *x, __m256 m, float *y, size_t n)
{
    __m256 e = exp8(_mm256_sub_ps(load8(x, n), m));

    store8(y, n, e);
    return _mm256_and_ps(e, _mm256_castsi256_ps(tail8(n)));
}

void softmax_f32_avx2(const float *x, float *y, size_t n)
{
    const __m256 least = _mm256_set1_ps(-INFINITY);
    __m256 p = _mm256_setzero_ps(), q = _mm256_setzero_ps(), m = least;

    /* max_ps(x, m) is m where x is NaN, as the twin's comparison. */
    for (size_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_blendv_ps(least, load8(x + i, n - i), _mm256_castsi256_ps(tail8(n - i)));

        m = _mm256_max_ps(v, m);
    }
    m = _mm256_set1_ps(most8(m));
    for (size_t i = 0; i < n; i += 16) {
        p = _mm256_add_ps(p, exps(x + i, m, y + i, n - i));
        q = _mm256_add_ps(q, exps(x + i + 8, m, y + i + 8, left8(n, i + 8)));
    }
    p = _mm256_set1_ps(tree16(p, q));
    for (size_t i = 0; i < n; i += 8)
        store8(y + i, n - i, _mm256_div_ps(load8(y + i, n - i), p));
}
