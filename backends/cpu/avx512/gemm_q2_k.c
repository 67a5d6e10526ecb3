/* q2_k × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, q2_k, avx512);

static void decode(const uint8_t *w, struct decoded256 *to)
{
    __m128i raw = _mm_loadu_si128((const __m128i *)w);

    decode_16(&blocks256_q2_k, w, _mm_and_si128(raw, _mm_set1_epi8(15)),
              _mm_and_si128(_mm_srli_epi16(raw, 4), _mm_set1_epi8(15)), to);
    to->d = half_at(w + 80);
    to->m = half_at(w + 82);
}

GEMM256(q2_k, 16, true)
