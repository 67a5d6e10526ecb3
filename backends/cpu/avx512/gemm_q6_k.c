/* q6_k × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q6_k, avx512);

static void decode(const uint8_t *w, struct decoded256 *to)
{
    decode_16(&blocks256_q6_k, w, _mm_loadu_si128((const __m128i *)(w + 192)), _mm_setzero_si128(),
              to);
    to->d = half_at(w + 208);
}

GEMM256(q6_k, 16, false)
