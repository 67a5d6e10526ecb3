/*
 * decode_avx512 - rows for panels: blocks as signed bytes in natural order,
 * from the same block functions as the matvec.
 */
#pragma once

#include "backends/cpu/avx512/blocks256_avx512.h"
#include "backends/cpu/avx512/blocks32_avx512.h"
#include "backends/cpu/avx512/panel_avx512.h"
#include "backends/cpu/avx512/points_avx512.h"

/* Eight blocks of 32: lanes of low and high sixteens become neighbours. */
INLINE void decode_blocks32(const struct blocks32 *f, const uint8_t *w, struct decoded32 *to)
{
    const __m512i first = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11);
    const __m512i second = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    const __m512i zero = _mm512_set1_epi8((char)f->zero);

    for (size_t i = 0; i < 2; i++) {
        __m512i lo, hi;

        f->four(w + (4 * i * f->bytes >> f->shift), &lo, &hi);
        lo = _mm512_sub_epi8(lo, zero);
        hi = _mm512_sub_epi8(hi, zero);
        _mm512_storeu_si512(to->q + 128 * i, _mm512_permutex2var_epi64(lo, first, hi));
        _mm512_storeu_si512(to->q + 128 * i + 64, _mm512_permutex2var_epi64(lo, second, hi));
    }
}

INLINE float half_at(const uint8_t *p)
{
    return _mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(lanes_load16(p))));
}

/* d and, behind it, m as f16 at the start of each of eight blocks. */
INLINE void decode_scales32(const uint8_t *w, size_t bytes, bool offset, struct decoded32 *to)
{
    _mm256_storeu_ps(to->d, _mm256_cvtph_ps(lanes_halves8(w, bytes)));
    if (offset)
        _mm256_storeu_ps(to->m, _mm256_cvtph_ps(lanes_halves8(w + 2, bytes)));
}

/* A kernel whose d, and m if there is an offset, are f16 at the start of the block. */
#define GEMM32(fmt, offset_)                                                                       \
    static void decode(const uint8_t *w, struct decoded32 *to)                                     \
    {                                                                                              \
        decode_blocks32(&blocks32_##fmt, w, to);                                                   \
        decode_scales32(w, blocks32_##fmt.bytes, blocks32_##fmt.offset, to);                       \
    }                                                                                              \
    void gemm_##fmt##_avx512(const struct gemm *g)                                                 \
    {                                                                                              \
        static const struct source32 source = {                                                    \
            .bytes = sizeof(struct block_##fmt),                                                   \
            .offset = offset_,                                                                     \
            .decode = decode,                                                                      \
        };                                                                                         \
                                                                                                   \
        gemm32_avx512(g, &source);                                                                 \
    }

/* -- 256 weights ---------------------------------------------------------------------------- */

INLINE void decode_bytes256(const struct parts256 *p, const struct blocks256 *f,
                            struct decoded256 *to)
{
    static const uint16_t pairs[8] = {0, 64, 32, 96, 128, 192, 160, 224};
    const __m512i zero = _mm512_set1_epi8((char)f->zero);

    for (size_t i = 0; i < 4; i++) {
        __m512i q = _mm512_sub_epi8(p->u[i], zero);

        if (f->order == ORDER_NATURAL) {
            _mm512_storeu_si512(to->q + 64 * i, q);
        } else if (f->order == ORDER_HALVES) {
            int8_t *at = to->q + i / 2 * 128 + i % 2 * 16;

            _mm_storeu_si128((__m128i *)at, _mm512_castsi512_si128(q));
            _mm_storeu_si128((__m128i *)(at + 32), _mm512_extracti32x4_epi32(q, 1));
            _mm_storeu_si128((__m128i *)(at + 64), _mm512_extracti32x4_epi32(q, 2));
            _mm_storeu_si128((__m128i *)(at + 96), _mm512_extracti32x4_epi32(q, 3));
        } else {
            _mm256_storeu_si256((__m256i *)(to->q + pairs[2 * i]), _mm512_castsi512_si256(q));
            _mm256_storeu_si256((__m256i *)(to->q + pairs[2 * i + 1]),
                                _mm512_extracti64x4_epi64(q, 1));
        }
    }
}

/* q4_k, q5_k: the header of one block in all lanes. */
INLINE void decode_k(const struct blocks256 *f, const uint8_t *w, struct decoded256 *to)
{
    struct head256 h;
    struct parts256 p;
    __m128i scales;

    head_k(w, 0, &h);
    f->block(w, &h, 0, &p);
    decode_bytes256(&p, f, to);
    scales = _mm512_castsi512_si128(h.scales);
    _mm_storeu_si128((__m128i *)to->scale, scales);
    _mm_storeu_si128((__m128i *)to->minima, _mm_srli_si128(scales, 8));
    to->d = half_at(w);
    to->m = half_at(w + 2);
}

/* Sixteen scales; no minima unless given. */
INLINE void decode_16(const struct blocks256 *f, const uint8_t *w, __m128i scales, __m128i minima,
                      struct decoded256 *to)
{
    struct parts256 p;

    f->block(w, NULL, 0, &p);
    decode_bytes256(&p, f, to);
    _mm_storeu_si128((__m128i *)to->scale, scales);
    _mm_storeu_si128((__m128i *)to->minima, minima);
}

/* The grid formats: bytes with signs apart. */
INLINE void decode_points(const struct points256 *x, const struct parts256 *p, int zero,
                          bool is_signed, float d, struct decoded256 *to)
{
    const __m512i up = _mm512_set1_epi8((char)zero), none = _mm512_setzero_si512();

    for (size_t i = 0; i < 4; i++) {
        __m512i q = _mm512_sub_epi8(p->u[i], up);

        if (is_signed)
            q = _mm512_mask_sub_epi8(q, p->minus[i], none, q);
        _mm512_storeu_si512(to->q + 64 * i, q);
    }
    memcpy(to->scale, x->scale, sizeof(to->scale));
    memset(to->minima, 0, sizeof(to->minima));
    to->d = d;
    to->m = 0;
}

#define GEMM256(fmt, subs_, minima_)                                                               \
    void gemm_##fmt##_avx512(const struct gemm *g)                                                 \
    {                                                                                              \
        static const struct source256 source = {                                                   \
            .bytes = sizeof(struct block_##fmt),                                                   \
            .subs = subs_,                                                                         \
            .minima = minima_,                                                                     \
            .decode = decode,                                                                      \
        };                                                                                         \
                                                                                                   \
        gemm256_avx512(g, &source);                                                                \
    }

/* block_of: block_magnitudes or block_ternary of points_avx512.h. */
#define GEMM256_POINTS(fmt, block_of, d_of)                                                        \
    static void decode(const uint8_t *w, struct decoded256 *to)                                    \
    {                                                                                              \
        struct points256 x;                                                                        \
        struct parts256 p;                                                                         \
                                                                                                   \
        points_##fmt(w, &x);                                                                       \
        block_of(&x, &p);                                                                          \
        decode_points(&x, &p, blocks256_##fmt.zero, blocks256_##fmt.is_signed, d_of, to);          \
    }                                                                                              \
    GEMM256(fmt, 16, false)
