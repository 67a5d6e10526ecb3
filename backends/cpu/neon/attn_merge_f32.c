/* Joins the partial attention of one more chunk. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(attn_merge, f32, neon);

void attn_merge_f32_neon(float *acc_m, float *acc_l, float *acc_o, float m, float l, const float *o,
                         size_t v_dim)
{
    float most = m > *acc_m ? m : *acc_m;
    float a = math_exp(*acc_m - most);
    float b = math_exp(m - most);

    *acc_m = most;
    *acc_l = fmaf(*acc_l, a, l * b);
    for (size_t d = 0; d < v_dim; d += 4) {
        float32x4_t more = vmulq_f32(load4(o + d, v_dim - d), vdupq_n_f32(b));

        store4(acc_o + d, v_dim - d, vfmaq_f32(more, load4(acc_o + d, v_dim - d), vdupq_n_f32(a)));
    }
}
