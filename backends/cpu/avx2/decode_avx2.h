/*
 * decode_avx2 - rows for panels: blocks as words in natural order, from the
 * same block functions as the matvec.
 */
#pragma once

#include "backends/cpu/avx2/blocks256_avx2.h"
#include "backends/cpu/avx2/blocks32_avx2.h"
#include "backends/cpu/avx2/panel_avx2.h"
#include "backends/cpu/avx2/points_avx2.h"

INLINE void store_words(int16_t *to, __m256i words)
{
    _mm256_storeu_si256((__m256i *)to, words);
}

/* Thirty-two bytes, less zero, as words times the scale words of their lane. */
INLINE void decode_bytes(__m256i u, int zero, __m256i scale_lo, __m256i scale_hi, int16_t *to)
{
    __m256i q = _mm256_sub_epi8(u, _mm256_set1_epi8((char)zero));
    __m256i lo = _mm256_cvtepi8_epi16(_mm256_castsi256_si128(q));
    __m256i hi = _mm256_cvtepi8_epi16(_mm256_extracti128_si256(q, 1));

    store_words(to, _mm256_mullo_epi16(lo, scale_lo));
    store_words(to + 16, _mm256_mullo_epi16(hi, scale_hi));
}

INLINE void decode_blocks32(const struct blocks32 *f, const uint8_t *w, struct decoded32 *to)
{
    const __m256i one = _mm256_set1_epi16(1);
    __m256 d, m;

    for (size_t i = 0; i < 8; i++)
        decode_bytes(f->block(w, i), f->zero, one, one, to->q + 32 * i);
    f->scales(w, &d, &m);
    _mm256_storeu_ps(to->d, d);
    _mm256_storeu_ps(to->m, m);
}

#define GEMM32(fmt, offset_)                                                                       \
    static void decode(const uint8_t *w, struct decoded32 *to)                                     \
    {                                                                                              \
        decode_blocks32(&blocks32_##fmt, w, to);                                                   \
    }                                                                                              \
    void gemm_##fmt##_avx2(const struct gemm *g)                                                   \
    {                                                                                              \
        const struct source32 source = {                                                           \
            .bytes = sizeof(struct block_##fmt),                                                   \
            .shift = blocks32_##fmt.shift,                                                         \
            .offset = offset_,                                                                     \
            .decode = decode,                                                                      \
        };                                                                                         \
                                                                                                   \
        gemm32_avx2(g, &source);                                                                   \
    }

/* words holds the minima, if the format has them: sixteen, below 64. */
INLINE void decode_block256(const struct blocks256 *f, const uint8_t *w, size_t d_at, size_t m_at,
                            struct decoded256 *to)
{
    struct parts256 p;
    __m128i minima = _mm_setzero_si128();

    f->block(w, &p);
    for (size_t j = 0; j < 8; j++)
        decode_bytes(p.u[j], f->zero, _mm256_permute2x128_si256(p.scale[j], p.scale[j], 0x00),
                     _mm256_permute2x128_si256(p.scale[j], p.scale[j], 0x11), to->q + 32 * j);
    if (f->minima)
        minima =
            _mm_packus_epi16(_mm256_castsi256_si128(p.words), _mm256_extracti128_si256(p.words, 1));
    _mm_storeu_si128((__m128i *)to->minima, minima);
    to->d = half_at(w + d_at);
    to->m = f->minima ? half_at(w + m_at) : 0.0f;
}

#define GEMM256_SOURCE(fmt, minima_)                                                               \
    void gemm_##fmt##_avx2(const struct gemm *g)                                                   \
    {                                                                                              \
        static const struct source256 source = {sizeof(struct block_##fmt), minima_, decode};      \
                                                                                                   \
        gemm256_avx2(g, &source);                                                                  \
    }

#define GEMM256(fmt, minima_)                                                                      \
    static void decode(const uint8_t *w, struct decoded256 *to)                                    \
    {                                                                                              \
        decode_block256(&blocks256_##fmt, w, offsetof(struct block_##fmt, d),                      \
                        offsetof(struct block_##fmt, d) + 2, to);                                  \
    }                                                                                              \
    GEMM256_SOURCE(fmt, minima_)

/* The grid formats: signed bytes, and a d that is a fraction. */
#define GEMM256_POINTS(fmt, d_of)                                                                  \
    static void decode(const uint8_t *w, struct decoded256 *to)                                    \
    {                                                                                              \
        decode_block256(&blocks256_##fmt, w, 0, 0, to);                                            \
        to->d = d_of;                                                                              \
    }                                                                                              \
    GEMM256_SOURCE(fmt, false)
