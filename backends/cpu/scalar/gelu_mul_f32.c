/* gelu(gate) * up, or gelu(gate); the definition of its bits is in math.h. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/math.h"

KERNEL(gelu_mul, f32, scalar);

void gelu_mul_f32_scalar(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++)
        y[i] = up ? math_gelu(gate[i]) * up[i] : math_gelu(gate[i]);
}
