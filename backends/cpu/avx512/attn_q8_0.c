/* Attention over a chunk of keys and values kept as q8_0: a value is d * q, exact in f32. */
#include "backends/cpu/avx512/attn_avx512.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q8_0, avx512);

static inline __attribute__((always_inline)) __m512 load(const void *row, size_t d, __mmask16 mask)
{
    const struct block_q8_0 *b = (const struct block_q8_0 *)row + d / 32;
    __m128i q = _mm_loadu_si128((const __m128i *)(b->qs + d % 32));

    (void)mask; /* rows are whole blocks */
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)),
                         _mm512_cvtph_ps(_mm256_set1_epi16((short)b->d)));
}

ATTN_KERNEL(q8_0, avx512, load, true)
