/* Joins the partial attention of one more chunk. */
#include <math.h>

#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(attn_merge, f32, avx512);

void attn_merge_f32_avx512(float *acc_m, float *acc_l, float *acc_o, float m, float l,
                           const float *o, size_t v_dim)
{
    float most = m > *acc_m ? m : *acc_m;
    float a = math_exp(*acc_m - most);
    float b = math_exp(m - most);
    __m512 va = _mm512_set1_ps(a), vb = _mm512_set1_ps(b);

    *acc_m = most;
    *acc_l = fmaf(*acc_l, a, l * b);
    for (size_t d = 0; d < v_dim; d += 16) {
        __mmask16 k = tail16(v_dim - d);
        __m512 more = _mm512_mul_ps(_mm512_maskz_loadu_ps(k, o + d), vb);

        _mm512_mask_storeu_ps(acc_o + d, k,
                              _mm512_fmadd_ps(_mm512_maskz_loadu_ps(k, acc_o + d), va, more));
    }
}
