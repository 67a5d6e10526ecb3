/* Floats to f16 as a cache keeps them, nearest and even. */
#include <string.h>

#include "backends/cpu/avx2/math_avx2.h"
#include "backends/cpu/kernels.h"

KERNEL(encode, f16, avx2);

void encode_f16_avx2(const float *x, void *out, size_t n)
{
    uint16_t *y = out;

    for (size_t i = 0; i < n; i += 8) {
        __m128i h = _mm256_cvtps_ph(load8(x + i, n - i), _MM_FROUND_TO_NEAREST_INT);

        if (n - i >= 8)
            _mm_storeu_si128((__m128i *)(y + i), h);
        else
            memcpy(y + i, &h, (n - i) * sizeof(*y));
    }
}
