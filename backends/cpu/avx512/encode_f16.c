/* Floats to f16 as a cache keeps them, nearest and even. */
#include "backends/cpu/avx512/math_avx512.h"
#include "backends/cpu/kernels.h"

KERNEL(encode, f16, avx512);

void encode_f16_avx512(const float *x, void *out, size_t n)
{
    uint16_t *y = out;

    for (size_t i = 0; i < n; i += 16) {
        __mmask16 m = tail16(n - i);
        __m256i h = _mm512_cvtps_ph(_mm512_maskz_loadu_ps(m, x + i), _MM_FROUND_TO_NEAREST_INT);

        _mm256_mask_storeu_epi16(y + i, m, h);
    }
}
