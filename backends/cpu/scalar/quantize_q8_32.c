/* A row of activations in blocks of 32; layout and rounding: act.h. */
#include "backends/cpu/scalar/quantize_scalar.h"

KERNEL(quantize, q8_32, scalar);

void quantize_q8_32_scalar(const float *x, size_t n, void *out)
{
    struct act_q8_32 *a = out;

    for (size_t k = 0; k < n; k += 32, a++) {
        a->d = quantize_block(x + k, n - k < 32 ? n - k : 32, a->q, 32);
        a->sum = 0;
        for (int i = 0; i < 32; i++)
            a->sum += a->q[i];
    }
}
