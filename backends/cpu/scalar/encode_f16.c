/* Floats to f16 as a cache keeps them: the format's own code. */
#include "backends/cpu/kernels.h"

KERNEL(encode, f16, scalar);

void encode_f16_scalar(const float *x, void *out, size_t n)
{
    format_of(FORMAT_f16)->from_f32(x, out, n);
}
