/* Attention over a chunk of keys and values kept as q4_0: a value is d * (q - 8), exact in f32. */
#include "backends/cpu/avx2/attn_avx2.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q4_0, avx2);

static inline void put16(float *out, __m128i nibbles, __m256 d)
{
    __m128i q = _mm_sub_epi8(nibbles, _mm_set1_epi8(8));
    __m256 lo = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q));
    __m256 hi = _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_srli_si128(q, 8)));

    _mm256_store_ps(out, _mm256_mul_ps(lo, d));
    _mm256_store_ps(out + 8, _mm256_mul_ps(hi, d));
}

/* Elements 0 … 15 of a block are the low nibbles, 16 … 31 the high ones. */
static inline void decode(const void *row, float *out, size_t n)
{
    const struct block_q4_0 *b = row;
    const __m128i low = _mm_set1_epi8(15);

    for (size_t i = 0; i < n; i += 32, b++) {
        __m256 d = _mm256_set1_ps(_cvtsh_ss(b->d));
        __m128i q = _mm_loadu_si128((const __m128i *)b->qs);

        put16(out + i, _mm_and_si128(q, low), d);
        put16(out + i + 16, _mm_and_si128(_mm_srli_epi16(q, 4), low), d);
    }
}

void attn_q4_0_avx2(const struct attn *a)
{
    attn_avx2(a, decode);
}
