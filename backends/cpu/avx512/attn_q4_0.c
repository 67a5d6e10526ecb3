/* Attention over a chunk of keys and values kept as q4_0: a value is d * (q - 8), exact in f32. */
#include "backends/cpu/avx512/attn_avx512.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q4_0, avx512);

static inline __m512 values(__m128i nibbles, __m512 d)
{
    __m512i q = _mm512_cvtepi8_epi32(_mm_sub_epi8(nibbles, _mm_set1_epi8(8)));

    return _mm512_mul_ps(_mm512_cvtepi32_ps(q), d);
}

/* Elements 0 … 15 of a block are the low nibbles, 16 … 31 the high ones. */
static inline void decode(const void *row, float *out, size_t n)
{
    const struct block_q4_0 *b = row;
    const __m128i low = _mm_set1_epi8(15);

    for (size_t i = 0; i < n; i += 32, b++) {
        __m512 d = _mm512_set1_ps(_cvtsh_ss(b->d));
        __m128i q = _mm_loadu_si128((const __m128i *)b->qs);

        _mm512_store_ps(out + i, values(_mm_and_si128(q, low), d));
        _mm512_store_ps(out + i + 16, values(_mm_and_si128(_mm_srli_epi16(q, 4), low), d));
    }
}

void attn_q4_0_avx512(const struct attn *a)
{
    attn_avx512(a, decode);
}
