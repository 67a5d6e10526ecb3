/* q2_0 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q2_0, avx512);

static void decode(const uint8_t *w, struct decoded32 *to)
{
    decode_blocks32(&blocks32_q2_0, w, to);
    for (size_t i = 0; i < 4; i++)
        to->d[2 * i] = to->d[2 * i + 1] = half_at(w + i * sizeof(struct block_q2_0));
}

void gemm_q2_0_avx512(const struct gemm *g)
{
    static const struct source32 source = {
        .bytes = sizeof(struct block_q2_0),
        .shift = 1,
        .decode = decode,
    };

    gemm32_avx512(g, &source);
}
