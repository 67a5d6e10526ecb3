/* A row of activations in blocks of 256 with sums of 16; layout and rounding: act.h. */
#include "backends/cpu/scalar/quantize_scalar.h"

KERNEL(quantize, q8_256, scalar);

void quantize_q8_256_scalar(const float *x, size_t n, void *out)
{
    struct act_q8_256 *a = out;

    for (size_t k = 0; k < n; k += 256, a++) {
        a->d = quantize_block(x + k, n - k < 256 ? n - k : 256, a->q, 256);
        for (int j = 0; j < 16; j++) {
            int sum = 0;

            for (int i = 0; i < 16; i++)
                sum += a->q[16 * j + i];
            a->sums[j] = (int16_t)sum; /* |sum| <= 2032 */
        }
        memset(a->pad, 0, sizeof a->pad);
    }
}
