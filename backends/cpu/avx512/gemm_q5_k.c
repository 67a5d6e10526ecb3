/* q5_k × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q5_k, avx512);

static void decode(const uint8_t *w, struct decoded256 *to)
{
    decode_k(&blocks256_q5_k, w, to);
}

GEMM256(q5_k, 8, true)
