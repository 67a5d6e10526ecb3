/* Attention over a chunk of keys and values kept as q4_0: a value is d * (q - 8), exact in f32. */
#include "backends/cpu/avx512/attn_avx512.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q4_0, avx512);

/* Elements 0 … 15 of a block are the low nibbles, 16 … 31 the high ones. */
static inline __attribute__((always_inline)) __m512 load(const void *row, size_t d, __mmask16 mask)
{
    const struct block_q4_0 *b = (const struct block_q4_0 *)row + d / 32;
    __m128i q = _mm_loadu_si128((const __m128i *)b->qs);

    (void)mask; /* rows are whole blocks */
    q = _mm_and_si128(d % 32 ? _mm_srli_epi16(q, 4) : q, _mm_set1_epi8(15));
    q = _mm_sub_epi8(q, _mm_set1_epi8(8));
    return _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)),
                         _mm512_set1_ps(_cvtsh_ss(b->d)));
}

ATTN_KERNEL(q4_0, avx512, load, true)
