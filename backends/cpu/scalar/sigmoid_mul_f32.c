/* sigmoid(gate) * up; the definition of its bits is in math.h. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(sigmoid_mul, f32, scalar);

void sigmoid_mul_f32_scalar(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = math_sigmoid(gate[i]) * up[i];
}
