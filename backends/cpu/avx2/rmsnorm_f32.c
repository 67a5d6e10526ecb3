/* Root mean square norm. */
#include <math.h>

#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(rmsnorm, f32, avx2);

void rmsnorm_f32_avx2(const float *x, const float *w, float eps, float *y, size_t n)
{
    __m256 p = _mm256_setzero_ps(), q = _mm256_setzero_ps();
    __m256 r;

    for (size_t i = 0; i < n; i += 16) {
        __m256 a = load8(x + i, n - i), b = load8(x + i + 8, left8(n, i + 8));

        p = _mm256_fmadd_ps(a, a, p);
        q = _mm256_fmadd_ps(b, b, q);
    }
    r = _mm256_set1_ps(1.0f / sqrtf(tree16(p, q) / (float)n + eps));
    for (size_t i = 0; i < n; i += 8) {
        __m256 v = _mm256_mul_ps(load8(x + i, n - i), r);

        store8(y + i, n - i, w ? _mm256_mul_ps(v, load8(w + i, n - i)) : v);
    }
}
