/* Attention over a chunk of keys and values kept as q8_0: a value is d * q, exact in f32. */
#include "backends/cpu/avx512/attn_avx512.h"
#include "backends/formats/blocks.h"

KERNEL(attn, q8_0, avx512);

static inline void decode(const void *row, float *out, size_t n)
{
    const struct block_q8_0 *b = row;

    for (size_t i = 0; i < n; i += 32, b++) {
        __m512 d = _mm512_set1_ps(_cvtsh_ss(b->d));

        for (size_t h = 0; h < 32; h += 16) {
            __m128i q = _mm_loadu_si128((const __m128i *)(b->qs + h));

            _mm512_store_ps(out + i + h,
                            _mm512_mul_ps(_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(q)), d));
        }
    }
}

void attn_q8_0_avx512(const struct attn *a)
{
    attn_avx512(a, decode);
}
