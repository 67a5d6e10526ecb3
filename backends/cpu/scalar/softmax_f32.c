/* Softmax of a row: maximum, exp, sum of sixteen partials, divide. */
#include <math.h>

#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(softmax, f32, scalar);

void softmax_f32_scalar(const float *x, float *y, size_t n)
{
    float p[16] = {0};
    float m = -INFINITY;
    float sum;

    for (size_t i = 0; i < n; i++)
        m = x[i] > m ? x[i] : m;
    for (size_t i = 0; i < n; i++) {
        y[i] = math_exp(x[i] - m);
        p[i % 16] += y[i];
    }
    sum = kernels_tree16(p);
    for (size_t i = 0; i < n; i++)
        y[i] = y[i] / sum;
}
