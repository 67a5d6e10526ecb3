/*
 * blocks256_avx2 - formats of 256 weights, one block at a time.
 *
 * u[j] holds weights 32j … 32j + 31 as bytes: the weight plus zero, 0 … 63,
 * or, where is_signed, the weight.  The pair sums of vpmaddubsw are exact (at
 * most 63 * 127 * 2, or 127 * 127 * 2 with |w|), and meet the words scale[j]
 * in vpmaddwd: one scale for all, or one for each lane of sixteen weights.
 *
 * words meets the sixteen sums of activations: the scales, for zero, or the
 * minima.
 */
#pragma once

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

struct parts256 {
    __m256i u[8];
    __m256i scale[8];
    __m256i words;
};

struct blocks256 {
    size_t bytes;
    int zero;
    bool is_signed;
    bool minima;
    void (*block)(const uint8_t *w, struct parts256 *p);
    /* d (and m) of eight consecutive blocks. */
    void (*scales)(const uint8_t *w, __m256 *d, __m256 *m);
};

INLINE __m256i low4(__m256i x)
{
    return _mm256_and_si256(x, _mm256_set1_epi8(15));
}

INLINE __m256i high4(__m256i x)
{
    return low4(_mm256_srli_epi16(x, 4));
}

/* Bits `from`, … of every byte that mask has at `to`, …. */
INLINE __m256i bits(__m256i x, int from, int to, int mask)
{
    x = from > to ? _mm256_srli_epi16(x, from - to) : _mm256_slli_epi16(x, to - from);
    return _mm256_and_si256(x, _mm256_set1_epi8((char)mask));
}

/* -- scales as words ---------------------------------------------------------------------- */

/* Eight bytes: scale[j] is byte j everywhere; eight words in, both lanes alike. */
INLINE void spread8(__m128i bytes, __m256i scale[8])
{
    __m256i words = _mm256_broadcastsi128_si256(_mm_cvtepi8_epi16(bytes));

#pragma GCC unroll 8
    for (int j = 0; j < 8; j++)
        scale[j] = _mm256_shuffle_epi8(words, _mm256_set1_epi16((short)(0x0101 * 2 * j + 0x0100)));
}

/* Sixteen signed bytes: scale[j] is byte 2j in the low lane, 2j + 1 in the high one. */
INLINE void spread16(__m128i bytes, __m256i scale[8])
{
    __m256i both = _mm256_broadcastsi128_si256(bytes);

#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) {
        /* into the upper byte of every word; the shift brings the sign */
        __m256i order = _mm256_set_m128i(_mm_set1_epi16((short)((2 * j + 1) << 8 | 0x80)),
                                         _mm_set1_epi16((short)(2 * j << 8 | 0x80)));

        scale[j] = _mm256_srai_epi16(_mm256_shuffle_epi8(both, order), 8);
    }
}

/* -- q4_k, q5_k --------------------------------------------------------------------------- */

/* The 6 + 6 bits of k_scale() and k_min(): eight bytes of scales, eight of minima. */
INLINE __m128i scale_bytes_k(const uint8_t *w)
{
    const __m128i low = _mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f);
    const __m128i high = _mm_setr_epi32(0, 0x30303030, 0, 0x30303030);
    __m128i x = load128(w);
    __m128i a = _mm_shuffle_epi32(x, _MM_SHUFFLE(3, 2, 3, 1)); /* u0 u2 u1 u2 */
    __m128i b = _mm_shuffle_epi32(x, _MM_SHUFFLE(2, 0, 1, 0)); /* –  u0 –  u1 */

    a = _mm_and_si128(_mm_srlv_epi32(a, _mm_setr_epi32(0, 0, 0, 4)), low);
    return _mm_or_si128(a, _mm_and_si128(_mm_srli_epi32(b, 2), high));
}

INLINE void scales_k(const uint8_t *w, struct parts256 *p)
{
    __m128i bytes = scale_bytes_k(w);
    __m128i minima = _mm_unpackhi_epi8(bytes, bytes); /* each twice: sums are of sixteen */

    spread8(bytes, p->scale);
    p->words = _mm256_cvtepu8_epi16(minima);
}

INLINE void block_q4_k(const uint8_t *w, struct parts256 *p)
{
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        __m256i x = load256(w + 16 + 32 * i);

        p->u[2 * i] = low4(x);
        p->u[2 * i + 1] = high4(x);
    }
    scales_k(w, p);
}

INLINE void block_q5_k(const uint8_t *w, struct parts256 *p)
{
    __m256i h = load256(w + 16);

#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        __m256i x = load256(w + 48 + 32 * i);

        p->u[2 * i] = _mm256_or_si256(low4(x), bits(h, 2 * i, 4, 16));
        p->u[2 * i + 1] = _mm256_or_si256(high4(x), bits(h, 2 * i + 1, 4, 16));
    }
    scales_k(w, p);
}

/* -- scales of sixteen ------------------------------------------------------------------------ */

INLINE void scales_16(__m128i bytes, struct parts256 *p)
{
    spread16(bytes, p->scale);
    p->words = _mm256_cvtepi8_epi16(bytes);
}

INLINE void block_q6_k(const uint8_t *w, struct parts256 *p)
{
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
        __m256i a = load256(w + 64 * i), b = load256(w + 64 * i + 32);
        __m256i h = load256(w + 128 + 32 * i);

        p->u[4 * i] = _mm256_or_si256(low4(a), bits(h, 0, 4, 48));
        p->u[4 * i + 1] = _mm256_or_si256(low4(b), bits(h, 2, 4, 48));
        p->u[4 * i + 2] = _mm256_or_si256(high4(a), bits(h, 4, 4, 48));
        p->u[4 * i + 3] = _mm256_or_si256(high4(b), bits(h, 6, 4, 48));
    }
    scales_16(load128(w + 192), p);
}

/* The sixteen six-bit scales of q3_k_scale(), less 32. */
INLINE __m128i scale_bytes_q3_k(const uint8_t *w)
{
    /* From two bytes before the scales, so that nothing behind the block is read. */
    __m128i raw = load128(w + 94);
    __m128i low =
        _mm_shuffle_epi8(raw, _mm_setr_epi8(2, 3, 4, 5, 6, 7, 8, 9, 2, 3, 4, 5, 6, 7, 8, 9));
    __m128i top = _mm_shuffle_epi8(
        raw, _mm_setr_epi8(10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13, 10, 11, 12, 13));

    low = _mm_srlv_epi64(low, _mm_setr_epi32(0, 0, 4, 0));
    top = _mm_srlv_epi32(top, _mm_setr_epi32(0, 2, 4, 6));
    low = _mm_and_si128(low, _mm_set1_epi8(15));
    top = _mm_slli_epi32(_mm_and_si128(top, _mm_set1_epi8(3)), 4);
    return _mm_sub_epi8(_mm_or_si128(low, top), _mm_set1_epi8(32));
}

INLINE void block_q3_k(const uint8_t *w, struct parts256 *p)
{
    __m256i h = load256(w);

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m256i x = load256(w + 32 + 32 * i);

#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            p->u[4 * i + j] = _mm256_or_si256(bits(x, 2 * j, 0, 3), bits(h, 4 * i + j, 2, 4));
    }
    scales_16(scale_bytes_q3_k(w), p);
}

INLINE void block_q2_k(const uint8_t *w, struct parts256 *p)
{
    __m128i raw = load128(w);

#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m256i x = load256(w + 16 + 32 * i);

#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            p->u[4 * i + j] = bits(x, 2 * j, 0, 3);
    }
    scales_16(_mm_and_si128(raw, _mm_set1_epi8(15)), p);
    p->words = _mm256_cvtepu8_epi16(_mm_and_si128(_mm_srli_epi16(raw, 4), _mm_set1_epi8(15)));
}

/* Values 0 … 2 (3 in a hostile block) as they are; zero is one, and so is every scale. */
INLINE void block_tq2_0(const uint8_t *w, struct parts256 *p)
{
#pragma GCC unroll 2
    for (int i = 0; i < 2; i++) {
        __m256i x = load256(w + 32 * i);

#pragma GCC unroll 4
        for (int j = 0; j < 4; j++)
            p->u[4 * i + j] = bits(x, 2 * j, 0, 3);
    }
    scales_16(_mm_set1_epi8(1), p);
}

/* Base-3 digits at the front of fractions of 256: one more where they pass a third, and two thirds. */
INLINE __m256i digits(__m256i x)
{
    __m256i third = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8(86)), x);
    __m256i two_thirds = _mm256_cmpeq_epi8(_mm256_max_epu8(x, _mm256_set1_epi8((char)171)), x);

    return _mm256_sub_epi8(_mm256_setzero_si256(), _mm256_add_epi8(third, two_thirds));
}

/* Digits 0 … 2 as they are; zero is one, and so is every scale. */
INLINE void block_tq1_0(const uint8_t *w, struct parts256 *p)
{
    __m256i a = load256(w), x[5];
    int qh;

    memcpy(&qh, w + 48, 4);
    x[0] =
        _mm256_inserti128_si256(_mm256_castsi128_si256(load128(w + 32)), _mm_cvtsi32_si128(qh), 1);
#pragma GCC unroll 5
    for (size_t n = 0; n < 5; n++) {
        p->u[n] = digits(a);
        a = _mm256_add_epi8(_mm256_add_epi8(a, a), a);
        if (n > 0)
            x[n] = _mm256_add_epi8(_mm256_add_epi8(x[n - 1], x[n - 1]), x[n - 1]);
    }
    p->u[5] = digits(_mm256_permute2x128_si256(x[0], x[1], 0x20));
    p->u[6] = digits(_mm256_permute2x128_si256(x[2], x[3], 0x20));
    a = _mm256_unpacklo_epi64(_mm256_unpacklo_epi32(x[0], x[1]), _mm256_unpacklo_epi32(x[2], x[3]));
    p->u[7] = digits(_mm256_blend_epi32(x[4], a, 0xf0));
    scales_16(_mm_set1_epi8(1), p);
}

/* -- iq4_xs ------------------------------------------------------------------------------------- */

/* Eight scales ls - 32: four bits of scales_l, two of scales_h each. */
INLINE __m128i scale_bytes_iq4_xs(const uint8_t *w)
{
    int low, high = lanes_load16(w + 2);
    __m128i lo, hi;

    memcpy(&low, w + 4, 4);
    lo = _mm_and_si128(_mm_unpacklo_epi8(_mm_cvtsi32_si128(low), _mm_cvtsi32_si128(low >> 4)),
                       _mm_set1_epi8(15));
    /* two bits to a byte: spread 16 bits over 8 bytes by multiplication-free shifts */
    hi = _mm_cvtepu8_epi32(_mm_cvtsi32_si128(high));
    hi = _mm_or_si128(_mm_or_si128(hi, _mm_slli_epi32(hi, 6)),
                      _mm_or_si128(_mm_slli_epi32(hi, 12), _mm_slli_epi32(hi, 18)));
    hi = _mm_slli_epi32(_mm_and_si128(hi, _mm_set1_epi8(3)), 4);
    return _mm_sub_epi8(_mm_or_si128(lo, hi), _mm_set1_epi8(32));
}

INLINE void block_iq4_xs(const uint8_t *w, struct parts256 *p)
{
    const __m256i table = _mm256_broadcastsi128_si256(load128(iq4_values));

#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) {
        __m128i x = load128(w + 8 + 16 * j);

        p->u[j] = _mm256_shuffle_epi8(table, low4(_mm256_set_m128i(_mm_srli_epi16(x, 4), x)));
    }
    spread8(scale_bytes_iq4_xs(w), p->scale);
    p->words = _mm256_setzero_si256();
}

/* -- the rows of the table ------------------------------------------------------------------------ */

#define BLOCKS256(fmt, zero_, signed_, d_at, m_at)                                                 \
    INLINE void scales_of_##fmt(const uint8_t *w, __m256 *d, __m256 *m)                            \
    {                                                                                              \
        *d = lanes_f16(w + d_at, sizeof(struct block_##fmt));                                      \
        *m = m_at ? lanes_f16(w + m_at, sizeof(struct block_##fmt)) : _mm256_setzero_ps();         \
    }                                                                                              \
    static const struct blocks256 blocks256_##fmt = {                                              \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .zero = zero_,                                                                             \
        .is_signed = signed_,                                                                      \
        .minima = m_at != 0,                                                                       \
        .block = block_##fmt,                                                                      \
        .scales = scales_of_##fmt,                                                                 \
    }

BLOCKS256(q2_k, 0, false, 80, 82);
BLOCKS256(q3_k, 4, false, 108, 0);
BLOCKS256(q4_k, 0, false, 0, 2);
BLOCKS256(q5_k, 0, false, 0, 2);
BLOCKS256(q6_k, 32, false, 208, 0);
BLOCKS256(iq4_xs, 0, true, 0, 0);
BLOCKS256(tq1_0, 1, false, 52, 0);
BLOCKS256(tq2_0, 1, false, 64, 0);
