/*
 * blocks32_avx2 - formats of 32 weights, one block at a time: 32 bytes in
 * natural order.
 *
 * small: bytes are 0 … 31, the weight plus zero, so that the pair sums of
 * vpmaddubsw (at most 31 * 127 * 2) may be added before they are widened.
 * Otherwise bytes are signed; |w| times a with w's sign keeps vpmaddubsw
 * exact (at most 128 * 127 * 2 = 32512).
 */
#pragma once

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

struct blocks32 {
    size_t bytes;
    bool small;
    int zero;
    bool offset;
    __m256i (*block)(const uint8_t *w);
    /* d (and m) of eight consecutive blocks. */
    void (*scales)(const uint8_t *w, __m256 *d, __m256 *m);
};

/* Sixteen bytes: low nibbles, then high nibbles. */
INLINE __m256i nibbles(const uint8_t *qs)
{
    __m128i x = load128(qs);
    __m256i both = _mm256_set_m128i(_mm_srli_epi16(x, 4), x);

    return _mm256_and_si256(both, _mm256_set1_epi8(15));
}

INLINE __m256i nibbles_of(const uint8_t *qs, const int8_t values[16])
{
    return _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(load128(values)), nibbles(qs));
}

/* 32 bits as 32 bytes of 0 or 16. */
INLINE __m256i fifth_bits(const uint8_t *qh)
{
    const __m256i spread = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                              0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i x;
    int bits;

    memcpy(&bits, qh, 4);
    x = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread);
    x = _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
    return _mm256_and_si256(x, _mm256_set1_epi8(16));
}

INLINE void scales_half(const uint8_t *w, size_t stride, bool offset, __m256 *d, __m256 *m)
{
    *d = lanes_f16(w, stride);
    *m = offset ? lanes_f16(w + 2, stride) : _mm256_setzero_ps();
}

#define BLOCKS32(fmt, small_, zero_, offset_, expr)                                                \
    INLINE __m256i block_of_##fmt(const uint8_t *w)                                                \
    {                                                                                              \
        return expr;                                                                               \
    }                                                                                              \
    INLINE void scales_of_##fmt(const uint8_t *w, __m256 *d, __m256 *m)                            \
    {                                                                                              \
        scales_half(w, sizeof(struct block_##fmt), offset_, d, m);                                 \
    }                                                                                              \
    static const struct blocks32 blocks32_##fmt = {                                                \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .small = small_,                                                                           \
        .zero = zero_,                                                                             \
        .offset = offset_,                                                                         \
        .block = block_of_##fmt,                                                                   \
        .scales = scales_of_##fmt,                                                                 \
    }

BLOCKS32(q4_0, true, 8, false, nibbles(w + 2));
BLOCKS32(q4_1, true, 0, true, nibbles(w + 4));
BLOCKS32(q5_0, true, 16, false, _mm256_or_si256(nibbles(w + 6), fifth_bits(w + 2)));
BLOCKS32(q5_1, true, 0, true, _mm256_or_si256(nibbles(w + 8), fifth_bits(w + 4)));
BLOCKS32(q8_0, false, 0, false, load256(w + 2));
BLOCKS32(iq4_nl, false, 0, false, nibbles_of(w + 2, iq4_values));

INLINE __m256i block_of_mxfp4(const uint8_t *w)
{
    return nibbles_of(w + 1, fp4_doubled);
}

INLINE void scales_of_mxfp4(const uint8_t *w, __m256 *d, __m256 *m)
{
    float x[8];

    for (size_t i = 0; i < 8; i++)
        x[i] = e8m0_half_to_f32(w[i * sizeof(struct block_mxfp4)]);
    *d = _mm256_setr_ps(x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]);
    *m = _mm256_setzero_ps();
}

static const struct blocks32 blocks32_mxfp4 = {
    .bytes = sizeof(struct block_mxfp4),
    .block = block_of_mxfp4,
    .scales = scales_of_mxfp4,
};
