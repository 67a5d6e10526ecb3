/* nvfp4 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"
#include "backends/cpu/avx512/nvfp4_avx512.h"

KERNEL(gemm, nvfp4, avx512);

/* Four blocks of 64; the scales of sixteens are apart, the even ones first. */
static void decode(const uint8_t *w, struct decoded32 *to)
{
    const __m512i apart = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15);
    __m512 d = lanes_ue4m3(lanes_dwords4(w, sizeof(struct block_nvfp4)));

    for (size_t i = 0; i < 4; i++)
        _mm512_storeu_si512(to->q + 64 * i, nvfp4_bytes(w + i * sizeof(struct block_nvfp4), 0));
    d = _mm512_permutexvar_ps(apart, d);
    _mm256_storeu_ps(to->d, _mm512_castps512_ps256(d));
    _mm256_storeu_ps(to->m, _mm512_extractf32x8_ps(d, 1));
}

void gemm_nvfp4_avx512(const struct gemm *g)
{
    static const struct source32 source = {
        .bytes = sizeof(struct block_nvfp4),
        .shift = 1,
        .two_scales = true,
        .decode = decode,
    };

    gemm32_avx512(g, &source);
}
