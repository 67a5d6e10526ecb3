/* q3_k × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q3_k, avx512);

static void decode(const uint8_t *w, struct decoded256 *to)
{
    decode_16(&blocks256_q3_k, w, scale_bytes_q3_k(w), _mm_setzero_si128(), to);
    to->d = half_at(w + 108);
}

GEMM256(q3_k, 16, false)
