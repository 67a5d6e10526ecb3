/* Attention over a chunk of keys and values kept as q8_0: a value is d * q, exact in f32. */
#include "backends/cpu/avx2/attn_avx2.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q8_0, avx2);

static inline __attribute__((always_inline)) __m256 load(const void *row, size_t d, size_t n)
{
    const struct block_q8_0 *b = (const struct block_q8_0 *)row + d / 32;
    __m128i q = _mm_loadl_epi64((const __m128i *)(b->qs + d % 32));

    (void)n; /* rows are whole blocks */
    return _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)),
                         _mm256_set1_ps(_cvtsh_ss(b->d)));
}

ATTN_KERNEL(q8_0, avx2, load, true)
