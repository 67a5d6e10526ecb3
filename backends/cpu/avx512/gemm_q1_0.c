/* q1_0 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q1_0, avx512);

static void decode(const uint8_t *w, struct decoded32 *to)
{
    decode_blocks32(&blocks32_q1_0, w, to);
    _mm_storeu_ps(to->d, _mm_set1_ps(half_at(w)));
    _mm_storeu_ps(to->d + 4, _mm_set1_ps(half_at(w + sizeof(struct block_q1_0))));
}

void gemm_q1_0_avx512(const struct gemm *g)
{
    static const struct source32 source = {
        .bytes = sizeof(struct block_q1_0),
        .shift = 2,
        .decode = decode,
    };

    gemm32_avx512(g, &source);
}
