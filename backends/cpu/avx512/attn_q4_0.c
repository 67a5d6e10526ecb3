/* Attention over a chunk of keys and values kept as q4_0: a value is d * (q - 8), exact in f32. */
#include "backends/cpu/avx512/attn_avx512.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q4_0, avx512);

/* Elements 0 … 15 of a block are the low nibbles, 16 … 31 the high ones. */
static inline __attribute__((always_inline)) __m512 load(const void *row, size_t d, __mmask16 mask)
{
    const struct block_q4_0 *b = (const struct block_q4_0 *)row + d / 32;
    __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)b->qs));
    const __m512 value = _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);

    (void)mask; /* rows are whole blocks; the permutation looks at four bits */
    if (d % 32)
        q = _mm512_srli_epi32(q, 4);
    return _mm512_mul_ps(_mm512_permutexvar_ps(q, value),
                         _mm512_cvtph_ps(_mm256_set1_epi16((short)b->d)));
}

ATTN_KERNEL(q4_0, avx512, load, true)
