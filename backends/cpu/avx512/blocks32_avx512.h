/*
 * blocks32_avx512 - formats of 32 weights, four blocks at a time.
 *
 * A format is a struct blocks32: how big, what number stands for zero, whether
 * an offset m belongs to it, and how four consecutive blocks become bytes
 * (0 … 255, the weight plus zero): lane l of *lo holds weights 0 … 15 of block
 * l, *hi weights 16 … 31.  All of it is inlined into the kernel that names it.
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

struct blocks32 {
    size_t bytes; /* of 1 << shift blocks */
    size_t shift; /* q1_0, q2_0: several thirty-twos share a scale */
    int zero;
    bool offset;
    void (*four)(const uint8_t *w, __m512i *lo, __m512i *hi);
    /* d (and m) of sixteen consecutive blocks. */
    void (*scales)(const uint8_t *w, __m512 *d, __m512 *m);
};

INLINE __m512i nibbles_low(__m512i x)
{
    return _mm512_and_si512(x, _mm512_set1_epi8(15));
}

/* One affine map over GF(2) moves the high nibble down and clears the rest. */
INLINE __m512i nibbles_high(__m512i x)
{
    return _mm512_gf2p8affine_epi64_epi8(x, _mm512_set1_epi64(0x1020408000000000), 0);
}

INLINE void four_nibbles(const uint8_t *qs, size_t stride, __m512i *lo, __m512i *hi)
{
    __m512i raw = lanes_load(qs, qs + stride, qs + 2 * stride, qs + 3 * stride);

    *lo = nibbles_low(raw);
    *hi = nibbles_high(raw);
}

INLINE void scales_d(const uint8_t *w, size_t stride, __m512 *d, __m512 *m)
{
    *d = lanes_f16(w, stride);
    *m = _mm512_setzero_ps();
}

/* d and m lie together: one dword per block. */
INLINE void scales_dm(const uint8_t *w, size_t stride, __m512 *d, __m512 *m)
{
    __m512i dm = lanes_dwords(w, stride);

    *d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(dm));
    *m = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(dm, 16)));
}

/* -- q4_0, q4_1 ------------------------------------------------------------------------ */

INLINE void four_q4_0(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    four_nibbles(w + 2, sizeof(struct block_q4_0), lo, hi);
}

INLINE void scales_q4_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_d(w, sizeof(struct block_q4_0), d, m);
}

INLINE void four_q4_1(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    four_nibbles(w + 4, sizeof(struct block_q4_1), lo, hi);
}

INLINE void scales_q4_1(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_dm(w, sizeof(struct block_q4_1), d, m);
}

static const struct blocks32 blocks32_q4_0 = {
    .bytes = sizeof(struct block_q4_0),
    .zero = 8,
    .four = four_q4_0,
    .scales = scales_q4_0,
};
static const struct blocks32 blocks32_q4_1 = {
    .bytes = sizeof(struct block_q4_1),
    .offset = true,
    .four = four_q4_1,
    .scales = scales_q4_1,
};

/* -- q5_0, q5_1: the fifth bits are mask registers --------------------------------------- */

INLINE void four_fives(const uint8_t *w, size_t stride, size_t at, __m512i *lo, __m512i *hi)
{
    const __m512i sixteen = _mm512_set1_epi8(16);
    uint64_t low = 0, high = 0;

    four_nibbles(w + at + 4, stride, lo, hi);
    for (size_t i = 0; i < 4; i++) {
        uint32_t qh;

        memcpy(&qh, w + i * stride + at, 4);
        low |= (uint64_t)(qh & 0xffff) << 16 * i;
        high |= (uint64_t)(qh >> 16) << 16 * i;
    }
    *lo = _mm512_mask_add_epi8(*lo, low, *lo, sixteen);
    *hi = _mm512_mask_add_epi8(*hi, high, *hi, sixteen);
}

INLINE void four_q5_0(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    four_fives(w, sizeof(struct block_q5_0), 2, lo, hi);
}

INLINE void scales_q5_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_d(w, sizeof(struct block_q5_0), d, m);
}

INLINE void four_q5_1(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    four_fives(w, sizeof(struct block_q5_1), 4, lo, hi);
}

INLINE void scales_q5_1(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_dm(w, sizeof(struct block_q5_1), d, m);
}

static const struct blocks32 blocks32_q5_0 = {
    .bytes = sizeof(struct block_q5_0),
    .zero = 16,
    .four = four_q5_0,
    .scales = scales_q5_0,
};
static const struct blocks32 blocks32_q5_1 = {
    .bytes = sizeof(struct block_q5_1),
    .offset = true,
    .four = four_q5_1,
    .scales = scales_q5_1,
};

/* -- q8_0 ------------------------------------------------------------------------------ */

INLINE void four_q8_0(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    const __m512i sign = _mm512_set1_epi8(-128);

    *lo = _mm512_xor_si512(lanes_load(w + 2, w + 36, w + 70, w + 104), sign);
    *hi = _mm512_xor_si512(lanes_load(w + 18, w + 52, w + 86, w + 120), sign);
}

INLINE void scales_q8_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_d(w, sizeof(struct block_q8_0), d, m);
}

static const struct blocks32 blocks32_q8_0 = {
    .bytes = sizeof(struct block_q8_0),
    .zero = 128,
    .four = four_q8_0,
    .scales = scales_q8_0,
};

/* -- iq4_nl, mxfp4: a table of sixteen, moved up so that it is never negative ---------------- */

INLINE __m512i table16(const int8_t values[16], int up)
{
    __m128i t = _mm_loadu_si128((const __m128i *)values);

    return _mm512_broadcast_i32x4(_mm_add_epi8(t, _mm_set1_epi8((char)up)));
}

INLINE void four_iq4_nl(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    const __m512i table = table16(iq4_values, 128);

    four_nibbles(w + 2, sizeof(struct block_iq4_nl), lo, hi);
    *lo = _mm512_shuffle_epi8(table, *lo);
    *hi = _mm512_shuffle_epi8(table, *hi);
}

INLINE void scales_iq4_nl(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_d(w, sizeof(struct block_iq4_nl), d, m);
}

INLINE void four_mxfp4(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    const __m512i table = table16(fp4_doubled, 12);

    four_nibbles(w + 1, sizeof(struct block_mxfp4), lo, hi);
    *lo = _mm512_shuffle_epi8(table, *lo);
    *hi = _mm512_shuffle_epi8(table, *hi);
}

/* e8m0_half_to_f32() of sixteen bytes. */
INLINE void scales_mxfp4(const uint8_t *w, __m512 *d, __m512 *m)
{
    uint8_t e[16];
    __m512i x;

    for (size_t i = 0; i < 16; i++)
        e[i] = w[i * sizeof(struct block_mxfp4)];
    x = _mm512_cvtepu8_epi32(_mm_set_epi8((char)e[15], (char)e[14], (char)e[13], (char)e[12],
                                          (char)e[11], (char)e[10], (char)e[9], (char)e[8],
                                          (char)e[7], (char)e[6], (char)e[5], (char)e[4],
                                          (char)e[3], (char)e[2], (char)e[1], (char)e[0]));
    *d = _mm512_castsi512_ps(_mm512_mask_sllv_epi32(
        _mm512_slli_epi32(_mm512_sub_epi32(x, _mm512_set1_epi32(1)), 23),
        _mm512_cmplt_epi32_mask(x, _mm512_set1_epi32(2)), _mm512_set1_epi32(0x00200000), x));
    *m = _mm512_setzero_ps();
}

static const struct blocks32 blocks32_iq4_nl = {
    .bytes = sizeof(struct block_iq4_nl),
    .zero = 128,
    .four = four_iq4_nl,
    .scales = scales_iq4_nl,
};
static const struct blocks32 blocks32_mxfp4 = {
    .bytes = sizeof(struct block_mxfp4),
    .zero = 12,
    .four = four_mxfp4,
    .scales = scales_mxfp4,
};

/* -- q2_0: two blocks to a scale; q1_0: four ------------------------------------------------ */

/* Sixteen weights of two bits are a dword: lane l of lo takes dword 2l, of hi dword 2l + 1. */
INLINE void four_q2_0(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    const __m512i even = _mm512_setr_epi32(0, 0, 0, 0, 2, 2, 2, 2, 4, 4, 4, 4, 6, 6, 6, 6);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    const __m512i fields = _mm512_broadcast_i32x4(
        _mm_setr_epi8(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30));
    const __m512i three = _mm512_set1_epi8(3);
    __m512i x = _mm512_castsi256_si512(
        _mm256_set_m128i(_mm_loadu_si128((const __m128i *)(w + sizeof(struct block_q2_0) + 2)),
                         _mm_loadu_si128((const __m128i *)(w + 2))));

    *lo = _mm512_multishift_epi64_epi8(fields, _mm512_permutexvar_epi32(even, x));
    *hi = _mm512_multishift_epi64_epi8(fields, _mm512_permutexvar_epi32(odd, x));
    *lo = _mm512_and_si512(*lo, three);
    *hi = _mm512_and_si512(*hi, three);
}

INLINE void scales_q2_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    const __m512i twice = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    __m256 x = _mm256_cvtph_ps(lanes_halves8(w, sizeof(struct block_q2_0)));

    *d = _mm512_permutexvar_ps(twice, _mm512_castps256_ps512(x));
    *m = _mm512_setzero_ps();
}

/* A weight is 0 or 2, less one; lane l of lo takes bytes 4l and 4l + 1, of hi the next two. */
INLINE void four_q1_0(const uint8_t *w, __m512i *lo, __m512i *hi)
{
    const __m512i lane = _mm512_setr_epi64(
        0x0000000000000000, 0x0101010101010101, 0x0404040404040404, 0x0505050505050505,
        0x0808080808080808, 0x0909090909090909, 0x0c0c0c0c0c0c0c0c, 0x0d0d0d0d0d0d0d0d);
    const __m512i bit = _mm512_set1_epi64((long long)0x8040201008040201);
    const __m512i two = _mm512_set1_epi8(2);
    __m512i x = _mm512_broadcast_i32x4(_mm_loadu_si128((const __m128i *)(w + 2)));
    __m512i next = _mm512_add_epi8(lane, two);

    *lo = _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(_mm512_shuffle_epi8(x, lane), bit), two);
    *hi = _mm512_maskz_mov_epi8(_mm512_test_epi8_mask(_mm512_shuffle_epi8(x, next), bit), two);
}

INLINE void scales_q1_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    const size_t stride = sizeof(struct block_q1_0);
    const __m512i four = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m128i x = _mm_cvtsi32_si128(lanes_load16(w));

    x = _mm_insert_epi16(x, lanes_load16(w + stride), 1);
    x = _mm_insert_epi16(x, lanes_load16(w + 2 * stride), 2);
    x = _mm_insert_epi16(x, lanes_load16(w + 3 * stride), 3);
    *d = _mm512_permutexvar_ps(four, _mm512_castps128_ps512(_mm_cvtph_ps(x)));
    *m = _mm512_setzero_ps();
}

static const struct blocks32 blocks32_q2_0 = {
    .bytes = sizeof(struct block_q2_0),
    .shift = 1,
    .zero = 1,
    .four = four_q2_0,
    .scales = scales_q2_0,
};
static const struct blocks32 blocks32_q1_0 = {
    .bytes = sizeof(struct block_q1_0),
    .shift = 2,
    .zero = 1,
    .four = four_q1_0,
    .scales = scales_q1_0,
};
