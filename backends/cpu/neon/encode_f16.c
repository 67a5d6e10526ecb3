/* Floats to f16 as a cache keeps them, nearest and even. */
#include "backends/cpu/kernels.h"
#include "backends/cpu/neon/math_neon.h"

KERNEL(encode, f16, neon);

void encode_f16_neon(const float *x, void *out, size_t n)
{
    uint16_t *y = out;

    for (size_t i = 0; i < n; i += 4) {
        uint16x4_t h = vreinterpret_u16_f16(vcvt_f16_f32(load4(x + i, n - i)));
        size_t left = n - i < 4 ? n - i : 4;

        memcpy(y + i, &h, left * sizeof(*y));
    }
}
