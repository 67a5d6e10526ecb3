/* nvfp4 × many columns by vpmaddwd; see panel_avx2.h. */
#include "backends/cpu/avx2/decode_avx2.h"
#include "backends/cpu/avx2/nvfp4_avx2.h"

KERNEL(gemm, nvfp4, avx2);

/* Four blocks of 64; the scales of sixteens are apart, the even ones first. */
static void decode(const uint8_t *w, struct decoded32 *to)
{
    const __m256i one = _mm256_set1_epi16(1);
    const __m256i apart = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);

    for (size_t i = 0; i < 8; i++)
        decode_bytes(nvfp4_bytes(w, i), 0, one, one, to->q + 32 * i);
    for (size_t i = 0; i < 2; i++) {
        __m256 d = nvfp4_scales(w + 2 * i * sizeof(struct block_nvfp4));

        d = _mm256_permutevar8x32_ps(d, apart);
        _mm_storeu_ps(to->d + 4 * i, _mm256_castps256_ps128(d));
        _mm_storeu_ps(to->m + 4 * i, _mm256_extractf128_ps(d, 1));
    }
}

void gemm_nvfp4_avx2(const struct gemm *g)
{
    static const struct source32 source = {
        .bytes = sizeof(struct block_nvfp4),
        .shift = 1,
        .two_scales = true,
        .decode = decode,
    };

    gemm32_avx2(g, &source);
}
