/*
 * points_avx512 - the grid formats as rows of blocks256_avx512.h, and their
 * decoding for panels; see backends/cpu/points.h.
 *
 * iq2, iq3: u is the magnitude, at most 62, and the activations take the sign.
 * iq1: u is 8 * ternary + shift + 10, at most 19.
 */
#pragma once

#include "backends/cpu/avx512/blocks256_avx512.h"
#include "backends/cpu/points.h"

#define TERNARY_ZERO 10

INLINE void block_magnitudes(const struct points256 *x, struct parts256 *p)
{
    for (size_t i = 0; i < 4; i++) {
        p->u[i] = _mm512_loadu_si512(x->eights + 8 * i);
        p->minus[i] = x->minus[i];
    }
    scale_words_16(_mm_loadu_si128((const __m128i *)x->scale), p);
}

INLINE void block_ternary(const struct points256 *x, struct parts256 *p)
{
    const __m512i one = _mm512_set1_epi8(1), two = _mm512_set1_epi8(2);

    for (size_t i = 0; i < 4; i++) {
        __m512i t = _mm512_add_epi8(_mm512_loadu_si512(x->eights + 8 * i), one);

        t = _mm512_add_epi8(_mm512_slli_epi16(t, 3), _mm512_set1_epi8(TERNARY_ZERO - 7));
        p->u[i] = _mm512_mask_sub_epi8(t, x->minus[i], t, two);
    }
    scale_words_16(_mm_loadu_si128((const __m128i *)x->scale), p);
}

#define POINTS256(fmt, block_of, zero_, signed_, d_of)                                             \
    INLINE void head_##fmt(const uint8_t *w, struct head256 *h)                                    \
    {                                                                                              \
        for (size_t l = 0; l < 4; l++)                                                             \
            points_##fmt(w + l * sizeof(struct block_##fmt), &h->points[l]);                       \
    }                                                                                              \
    INLINE void block_##fmt(const uint8_t *w, const struct head256 *h, int lane,                   \
                            struct parts256 *p)                                                    \
    {                                                                                              \
        (void)w;                                                                                   \
        block_of(&h->points[lane], p);                                                             \
    }                                                                                              \
    INLINE void scales_##fmt(const uint8_t *w, __m512 *d, __m512 *m)                               \
    {                                                                                              \
        *d = d_of;                                                                                 \
        *m = _mm512_setzero_ps();                                                                  \
    }                                                                                              \
    static const struct blocks256 blocks256_##fmt = {                                              \
        .bytes = sizeof(struct block_##fmt),                                                       \
        .zero = zero_,                                                                             \
        .is_signed = signed_,                                                                      \
        .head = head_##fmt,                                                                        \
        .block = block_##fmt,                                                                      \
        .scales = scales_##fmt,                                                                    \
    }

INLINE __m512 scaled_f16(const uint8_t *w, size_t stride, float factor)
{
    return _mm512_mul_ps(lanes_f16(w, stride), _mm512_set1_ps(factor));
}

INLINE __m512 d_iq1_m(const uint8_t *w)
{
    uint16_t h[16];

    for (size_t i = 0; i < 16; i++)
        h[i] = points_half_iq1_m(w + i * sizeof(struct block_iq1_m));
    return _mm512_mul_ps(_mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)h)),
                         _mm512_set1_ps(0.125f));
}

POINTS256(iq2_xxs, block_magnitudes, 0, true, scaled_f16(w, sizeof(struct block_iq2_xxs), 0.125f));
POINTS256(iq2_xs, block_magnitudes, 0, true, scaled_f16(w, sizeof(struct block_iq2_xs), 0.125f));
POINTS256(iq2_s, block_magnitudes, 0, true, scaled_f16(w, sizeof(struct block_iq2_s), 0.125f));
POINTS256(iq3_xxs, block_magnitudes, 0, true, scaled_f16(w, sizeof(struct block_iq3_xxs), 0.25f));
POINTS256(iq3_s, block_magnitudes, 0, true, scaled_f16(w, sizeof(struct block_iq3_s), 1.0f));
POINTS256(iq1_s, block_ternary, TERNARY_ZERO, false,
          scaled_f16(w, sizeof(struct block_iq1_s), 0.125f));
POINTS256(iq1_m, block_ternary, TERNARY_ZERO, false, d_iq1_m(w));
