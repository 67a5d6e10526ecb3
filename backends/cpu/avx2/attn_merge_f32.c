/* Joins the partial attention of one more chunk. */
#include <math.h>

#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(attn_merge, f32, avx2);

void attn_merge_f32_avx2(float *acc_m, float *acc_l, float *acc_o, float m, float l, const float *o,
                         size_t v_dim)
{
    float most = m > *acc_m ? m : *acc_m;
    float a = math_exp(*acc_m - most);
    float b = math_exp(m - most);
    __m256 va = _mm256_set1_ps(a), vb = _mm256_set1_ps(b);

    *acc_m = most;
    *acc_l = fmaf(*acc_l, a, l * b);
    for (size_t d = 0; d < v_dim; d += 8) {
        __m256 more = _mm256_mul_ps(load8(o + d, v_dim - d), vb);

        store8(acc_o + d, v_dim - d, _mm256_fmadd_ps(load8(acc_o + d, v_dim - d), va, more));
    }
}
