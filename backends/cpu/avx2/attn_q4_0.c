/* Attention over a chunk of keys and values kept as q4_0: a value is d * (q - 8), exact in f32. */
#include "backends/cpu/avx2/attn_avx2.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q4_0, avx2);

/* Elements 0 … 15 of a block are the low nibbles, 16 … 31 the high ones. */
static inline __attribute__((always_inline)) __m256 load(const void *row, size_t d, size_t n)
{
    const struct block_q4_0 *b = (const struct block_q4_0 *)row + d / 32;
    __m128i q = _mm_loadl_epi64((const __m128i *)(b->qs + d % 16));

    (void)n; /* rows are whole blocks */
    q = _mm_and_si128(d % 32 < 16 ? q : _mm_srli_epi16(q, 4), _mm_set1_epi8(15));
    q = _mm_sub_epi8(q, _mm_set1_epi8(8));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)),
                         _mm256_set1_ps(_cvtsh_ss(b->d)));
}

ATTN_KERNEL(q4_0, avx2, load, true)
