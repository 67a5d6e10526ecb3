/* Attention over a chunk of keys and values kept as q8_0: a value is d * q, exact in f32. */
#include "backends/cpu/avx2/attn_avx2.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q8_0, avx2);

static inline void decode(const void *row, float *out, size_t n)
{
    const struct block_q8_0 *b = row;

    for (size_t i = 0; i < n; i += 32, b++) {
        __m256 d = _mm256_set1_ps(_cvtsh_ss(b->d));

        for (size_t h = 0; h < 32; h += 8) {
            __m128i q = _mm_loadl_epi64((const __m128i *)(b->qs + h));

            _mm256_store_ps(out + i + h,
                            _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(q)), d));
        }
    }
}

void attn_q8_0_avx2(const struct attn *a)
{
    attn_avx2(a, decode);
}
