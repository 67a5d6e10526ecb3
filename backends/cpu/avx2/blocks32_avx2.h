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
    size_t bytes; /* of 1 << shift blocks */
    size_t shift; /* q1_0, q2_0: several thirty-twos share a scale */
    bool small;
    int zero;
    bool offset;
    __m256i (*block)(const uint8_t *w, size_t i); /* the i-th from w on */
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

/* 32 bits as 32 bytes of 0 or value. */
INLINE __m256i spread_bits(const uint8_t *at, char value)
{
    const __m256i spread = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                              0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i x;
    int bits;

    memcpy(&bits, at, 4);
    x = _mm256_shuffle_epi8(_mm256_set1_epi32(bits), spread);
    x = _mm256_cmpeq_epi8(_mm256_and_si256(x, bit), bit);
    return _mm256_and_si256(x, _mm256_set1_epi8(value));
}

/* Eight bytes of four fields of two bits. */
INLINE __m256i spread_pairs(const uint8_t *at)
{
    __m256i x = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)at));

    x = _mm256_or_si256(_mm256_or_si256(x, _mm256_slli_epi32(x, 6)),
                        _mm256_or_si256(_mm256_slli_epi32(x, 12), _mm256_slli_epi32(x, 18)));
    return _mm256_and_si256(x, _mm256_set1_epi8(3));
}

INLINE void scales_half(const uint8_t *w, size_t stride, bool offset, __m256 *d, __m256 *m)
{
    *d = lanes_f16(w, stride);
    *m = offset ? lanes_f16(w + 2, stride) : _mm256_setzero_ps();
}

#define BLOCKS32(fmt, small_, zero_, offset_, expr)                                                \
    INLINE __m256i block_of_##fmt(const uint8_t *from, size_t i)                                   \
    {                                                                                              \
        const uint8_t *w = from + i * sizeof(struct block_##fmt);                                  \
                                                                                                   \
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
BLOCKS32(q5_0, true, 16, false, _mm256_or_si256(nibbles(w + 6), spread_bits(w + 2, 16)));
BLOCKS32(q5_1, true, 0, true, _mm256_or_si256(nibbles(w + 8), spread_bits(w + 4, 16)));
BLOCKS32(q8_0, false, 0, false, load256(w + 2));
BLOCKS32(iq4_nl, false, 0, false, nibbles_of(w + 2, iq4_values));

INLINE __m256i block_of_mxfp4(const uint8_t *w, size_t i)
{
    return nibbles_of(w + i * sizeof(struct block_mxfp4) + 1, fp4_doubled);
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

/* -- q2_0: two blocks to a scale; q1_0: four ------------------------------------------------ */

INLINE __m256i block_of_q2_0(const uint8_t *w, size_t i)
{
    return spread_pairs(w + i / 2 * sizeof(struct block_q2_0) + 2 + i % 2 * 8);
}

INLINE void scales_of_q2_0(const uint8_t *w, __m256 *d, __m256 *m)
{
    const size_t stride = sizeof(struct block_q2_0);
    __m128i x = _mm_cvtsi32_si128(lanes_load16(w));

    x = _mm_insert_epi16(x, lanes_load16(w + stride), 1);
    x = _mm_insert_epi16(x, lanes_load16(w + 2 * stride), 2);
    x = _mm_insert_epi16(x, lanes_load16(w + 3 * stride), 3);
    *d = _mm256_cvtph_ps(_mm_unpacklo_epi16(x, x));
    *m = _mm256_setzero_ps();
}

INLINE __m256i block_of_q1_0(const uint8_t *w, size_t i)
{
    return spread_bits(w + i / 4 * sizeof(struct block_q1_0) + 2 + i % 4 * 4, 2);
}

INLINE void scales_of_q1_0(const uint8_t *w, __m256 *d, __m256 *m)
{
    *d = _mm256_set_m128(_mm_set1_ps(half_at(w + sizeof(struct block_q1_0))),
                         _mm_set1_ps(half_at(w)));
    *m = _mm256_setzero_ps();
}

static const struct blocks32 blocks32_q2_0 = {
    .bytes = sizeof(struct block_q2_0),
    .shift = 1,
    .small = true,
    .zero = 1,
    .block = block_of_q2_0,
    .scales = scales_of_q2_0,
};
static const struct blocks32 blocks32_q1_0 = {
    .bytes = sizeof(struct block_q1_0),
    .shift = 2,
    .small = true,
    .zero = 1,
    .block = block_of_q1_0,
    .scales = scales_of_q1_0,
};
