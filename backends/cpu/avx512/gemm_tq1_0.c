/* tq1_0 × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, tq1_0, avx512);

static void decode(const uint8_t *w, struct decoded256 *to)
{
    decode_16(&blocks256_tq1_0, w, _mm_set1_epi8(1), _mm_setzero_si128(), to);
    to->d = half_at(w + 52);
    to->m = 0;
}

GEMM256(tq1_0, 16, false)
