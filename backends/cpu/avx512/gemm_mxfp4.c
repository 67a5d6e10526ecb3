/* mxfp4 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, mxfp4, avx512);

static void decode(const uint8_t *w, struct decoded32 *to)
{
    decode_blocks32(&blocks32_mxfp4, w, to);
    for (size_t i = 0; i < 8; i++)
        to->d[i] = e8m0_half_to_f32(w[i * sizeof(struct block_mxfp4)]);
}

void gemm_mxfp4_avx512(const struct gemm *g)
{
    static const struct source32 source = {
        .bytes = sizeof(struct block_mxfp4),
        .decode = decode,
    };

    gemm32_avx512(g, &source);
}
