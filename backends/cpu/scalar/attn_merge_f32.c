/* Joins the partial attention of one more chunk; see kernels.h. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(attn_merge, f32, scalar);

void attn_merge_f32_scalar(float *acc_m, float *acc_l, float *acc_o, float m, float l,
                           const float *o, size_t v_dim)
{
    float most = m > *acc_m ? m : *acc_m;
    float a = math_exp(*acc_m - most);
    float b = math_exp(m - most);

    *acc_m = most;
    *acc_l = fmaf(*acc_l, a, l * b);
    for (size_t d = 0; d < v_dim; d++)
        acc_o[d] = fmaf(acc_o[d], a, o[d] * b);
}
