/* Layer norm. */
#include <math.h>

#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(layernorm, f32, avx2);

/* x - mean; zero in lanes past n. */
static inline __m256 centred8(const float *x, size_t n, __m256 mean)
{
    return _mm256_and_ps(_mm256_sub_ps(load8(x, n), mean), _mm256_castsi256_ps(tail8(n)));
}

void layernorm_f32_avx2(const float *x, const float *w, const float *b, float eps, float *y,
                        size_t n)
{
    __m256 p[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 q[2] = {_mm256_setzero_ps(), _mm256_setzero_ps()};
    __m256 mean, r;

    for (size_t i = 0; i < n; i += 8)
        p[i / 8 % 2] = _mm256_add_ps(p[i / 8 % 2], load8(x + i, n - i));
    mean = _mm256_set1_ps(tree16(p[0], p[1]) / (float)n);
    for (size_t i = 0; i < n; i += 8) {
        __m256 d = centred8(x + i, n - i, mean);

        q[i / 8 % 2] = _mm256_fmadd_ps(d, d, q[i / 8 % 2]);
    }
    r = _mm256_set1_ps(1.0f / sqrtf(tree16(q[0], q[1]) / (float)n + eps));
    for (size_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(_mm256_sub_ps(load8(x + i, n - i), mean), r);

        v = w ? _mm256_mul_ps(v, load8(w + i, n - i)) : v;
        store8(y + i, n - i, b ? _mm256_add_ps(v, load8(b + i, n - i)) : v);
    }
}
