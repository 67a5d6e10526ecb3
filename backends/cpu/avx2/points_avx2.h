/*
 * points_avx2 - the grid formats as rows of blocks256_avx2.h; see
 * backends/cpu/points.h.  Weights are signed bytes, at most 62.
 */
#pragma once

#include "backends/cpu/avx2/blocks256_avx2.h"
#include "backends/cpu/points.h"

/* Bytes 32j … 32j + 31 of a block's signs: -1 where the weight is negative. */
INLINE __m256i minus_mask(const struct points256 *x, size_t j)
{
    const __m256i spread = _mm256_setr_epi64x(0x0000000000000000, 0x0101010101010101,
                                              0x0202020202020202, 0x0303030303030303);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201);
    __m256i m = _mm256_set1_epi32((int)(uint32_t)(x->minus[j / 2] >> j % 2 * 32));

    return _mm256_cmpeq_epi8(_mm256_and_si256(_mm256_shuffle_epi8(m, spread), bit), bit);
}

INLINE void block_magnitudes(const struct points256 *x, struct parts256 *p)
{
    for (size_t j = 0; j < 8; j++) {
        __m256i m = minus_mask(x, j);

        p->u[j] = _mm256_sub_epi8(_mm256_xor_si256(load256(x->bytes + 32 * j), m), m);
    }
    spread16(load128(x->scale), p->scale);
    p->words = _mm256_setzero_si256();
}

/* 8 * ternary + shift. */
INLINE void block_ternary(const struct points256 *x, struct parts256 *p)
{
    const __m256i one = _mm256_set1_epi8(1), eight = _mm256_set1_epi8(8);

    for (size_t j = 0; j < 8; j++) {
        __m256i t = _mm256_add_epi8(load256(x->bytes + 32 * j), one);

        t = _mm256_sub_epi8(_mm256_slli_epi16(t, 3), eight);
        p->u[j] = _mm256_add_epi8(t, _mm256_or_si256(minus_mask(x, j), one));
    }
    spread16(load128(x->scale), p->scale);
    p->words = _mm256_setzero_si256();
}

#define POINTS256(fmt, block_of, d_of)                                                             \
    INLINE void block_##fmt(const uint8_t *w, struct parts256 *p)                                  \
    {                                                                                              \
        struct points256 x;                                                                        \
                                                                                                   \
        points_##fmt(w, &x);                                                                       \
        block_of(&x, p);                                                                           \
    }                                                                                              \
    INLINE void scales_of_##fmt(const uint8_t *w, __m256 *d, __m256 *m)                            \
    {                                                                                              \
        *d = d_of;                                                                                 \
        *m = _mm256_setzero_ps();                                                                  \
    }                                                                                              \
    static const struct blocks256 blocks256_##fmt = {                                              \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .is_signed = true,                                                                         \
        .block = block_##fmt,                                                                      \
        .scales = scales_of_##fmt,                                                                 \
    }

INLINE __m256 scaled_f16(const uint8_t *w, size_t stride, float factor)
{
    return _mm256_mul_ps(lanes_f16(w, stride), _mm256_set1_ps(factor));
}

INLINE __m256 d_iq1_m(const uint8_t *w)
{
    uint16_t h[8];

    for (size_t i = 0; i < 8; i++)
        h[i] = points_half_iq1_m(w + i * sizeof(struct block_iq1_m));
    return _mm256_mul_ps(_mm256_cvtph_ps(load128(h)), _mm256_set1_ps(0.125f));
}

POINTS256(iq2_xxs, block_magnitudes, scaled_f16(w, sizeof(struct block_iq2_xxs), 0.125f));
POINTS256(iq2_xs, block_magnitudes, scaled_f16(w, sizeof(struct block_iq2_xs), 0.125f));
POINTS256(iq2_s, block_magnitudes, scaled_f16(w, sizeof(struct block_iq2_s), 0.125f));
POINTS256(iq3_xxs, block_magnitudes, scaled_f16(w, sizeof(struct block_iq3_xxs), 0.25f));
POINTS256(iq3_s, block_magnitudes, scaled_f16(w, sizeof(struct block_iq3_s), 1.0f));
POINTS256(iq1_s, block_ternary, scaled_f16(w, sizeof(struct block_iq1_s), 0.125f));
POINTS256(iq1_m, block_ternary, d_iq1_m(w));
