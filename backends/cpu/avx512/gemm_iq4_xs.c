/* iq4_xs × many columns by VNNI; see panel_avx512.h. */
#include "backends/cpu/avx512/decode_avx512.h"

KERNEL(gemm, iq4_xs, avx512);

static void decode(const uint8_t *w, struct decoded256 *to)
{
    struct parts256 p;
    __m128i lo, hi;

    block_iq4_xs(w, NULL, 0, &p);
    decode_bytes256(&p, &blocks256_iq4_xs, to);
    /* One dword of each lane is that lane's scale. */
    lo = _mm512_cvtepi32_epi8(lanes_flip(p.scale[0]));
    hi = _mm512_cvtepi32_epi8(lanes_flip(p.scale[1]));
    _mm_storeu_si128((__m128i *)to->scale, _mm_unpacklo_epi32(lo, hi));
    _mm_storeu_si128((__m128i *)to->minima, _mm_setzero_si128());
    to->d = half_at(w);
    to->m = 0;
}

GEMM256(iq4_xs, 8, false)
