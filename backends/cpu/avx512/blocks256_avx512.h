/*
 * blocks256_avx512 - formats of 256 weights, one block at a time.
 *
 * A block becomes four vectors of bytes u (the weight plus zero, 0 … 63) in
 * the order that the format finds cheapest; its activations are laid out in
 * the same order.  With p[i] the four dword sums of u[i] x a[i], the words
 * packs(p[0], p[1]) and packs(p[2], p[3]) (four products of at most 63 * 127
 * fit) meet the words scale[0] and scale[1] in vpmaddwd.
 *
 *   ORDER_NATURAL  u[i] = weights 64i … 64i + 63
 *   ORDER_PAIRS    u = {subs 0, 2} {1, 3} {4, 6} {5, 7}, subs of 32
 *   ORDER_HALVES   u = first halves of subs 0 … 3, second halves, then of subs 4 … 7
 *
 * HALVES belongs to values of up to 8 bits (iq4_xs): p[0] + p[1] and p[2] +
 * p[3] share a scale per lane, do not fit words, and meet scale[] as dwords.
 *
 * What else a block has:
 *
 *   MINIMA_NONE     zero > 0: words is the sixteen scales, twice; they meet -zero / 2 * Σ a
 *   MINIMA_EIGHT    head is four blocks' lanes of eight minima words
 *   MINIMA_SIXTEEN  words is the sixteen minima, then zeros
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/cpu/points.h"
#include "backends/formats/blocks.h"
#include "backends/formats/iq_tables.h"

enum order256 { ORDER_NATURAL, ORDER_PAIRS, ORDER_HALVES };
enum minima256 { MINIMA_NONE, MINIMA_EIGHT, MINIMA_SIXTEEN };

/* What four consecutive blocks share: made once, used by lane. */
struct head256 {
    __m512i scales; /* lane l: 8 bytes of scales of block l, 8 of minima */
    __m512i minima; /* lane l: 8 words */
    struct points256 points[4];
};

struct parts256 {
    __m512i u[4];
    __m512i scale[2];
    __m512i words;
    __mmask64 minus[4]; /* is_signed: where the weight is -u */
};

struct blocks256 {
    size_t bytes;
    int zero;
    bool is_signed;
    enum order256 order;
    enum minima256 minima;
    void (*head)(const uint8_t *w, struct head256 *h);
    void (*block)(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p);
    void (*scales)(const uint8_t *w, __m512 *d, __m512 *m);
};

INLINE __m512i low4(__m512i x)
{
    return _mm512_and_si512(x, _mm512_set1_epi8(15));
}

/*
 * Affine maps over GF(2): byte i of the matrix, counted from the top, is the
 * input bit that becomes output bit i.
 */
#define AFFINE_HIGH4 0x1020408000000000

INLINE __m512i high4(__m512i x)
{
    return _mm512_gf2p8affine_epi64_epi8(x, _mm512_set1_epi64(AFFINE_HIGH4), 0);
}

/* Thirty-two bytes of bit fields, twice: each half takes its own field out by its own map. */
INLINE __m512i fields(const uint8_t *at, uint64_t map_lo, uint64_t map_hi)
{
    __m512i x = _mm512_broadcast_i64x4(_mm256_loadu_si256((const __m256i *)at));
    __m512i map = _mm512_setr_epi64((long long)map_lo, (long long)map_lo, (long long)map_lo,
                                    (long long)map_lo, (long long)map_hi, (long long)map_hi,
                                    (long long)map_hi, (long long)map_hi);

    return _mm512_gf2p8affine_epi64_epi8(x, map, 0);
}

/* Input bit `from` becomes output bit `to`. */
#define MOVE(from, to) ((uint64_t)1 << (from) << 8 * (7 - (to)))

/* The same word four times. */
#define FOUR(x) ((long long)(x)*0x0001000100010001)

INLINE void head_none(const uint8_t *w, struct head256 *h)
{
    (void)w;
    (void)h;
}

/* -- q4_k, q5_k ------------------------------------------------------------------------- */

/* The 6 + 6 bits of k_scale() and k_min() for four blocks at once, a lane each. */
INLINE void head_k(const uint8_t *w, size_t bytes, struct head256 *h)
{
    const __m512i shift = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0, 0, 4));
    const __m512i low =
        _mm512_broadcast_i32x4(_mm_setr_epi32(0x3f3f3f3f, 0x0f0f0f0f, 0x3f3f3f3f, 0x0f0f0f0f));
    const __m512i high = _mm512_broadcast_i32x4(_mm_setr_epi32(0, 0x30303030, 0, 0x30303030));
    /* dwords of a header: d and dmin, then u0, u1, u2 of six-bit things */
    __m512i x = lanes_load(w, w + bytes, w + 2 * bytes, w + 3 * bytes);
    __m512i a = _mm512_shuffle_epi32(x, _MM_PERM_DCDB); /* u0 u2 u1 u2 */
    __m512i b = _mm512_shuffle_epi32(x, _MM_PERM_CABA); /* –  u0 –  u1 */

    a = _mm512_and_si512(_mm512_srlv_epi32(a, shift), low);
    b = _mm512_and_si512(_mm512_srli_epi32(b, 2), high);
    h->scales = _mm512_or_si512(a, b); /* sc 0-3, sc 4-7, m 0-3, m 4-7 */
    h->minima = _mm512_unpackhi_epi8(h->scales, _mm512_setzero_si512());
}

/* Words of scales that packs() of PAIRS meets: lanes 0 and 1 scales s, s + 1, lanes 2 and 3 s + 2, s + 3. */
INLINE __m512i scale_words_k(const struct head256 *h, int lane, int s)
{
    const __m512i order =
        _mm512_setr_epi64(FOUR(0), FOUR(1), FOUR(0), FOUR(1), FOUR(2), FOUR(3), FOUR(2), FOUR(3));

    return _mm512_maskz_permutexvar_epi8(
        0x5555555555555555, _mm512_add_epi16(order, _mm512_set1_epi16((short)(16 * lane + s))),
        h->scales);
}

INLINE void head_q4_k(const uint8_t *w, struct head256 *h)
{
    head_k(w, sizeof(struct block_q4_k), h);
}

INLINE void block_q4_k(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    __m512i a = _mm512_loadu_si512(w + 16), b = _mm512_loadu_si512(w + 80);

    p->u[0] = low4(a);
    p->u[1] = high4(a);
    p->u[2] = low4(b);
    p->u[3] = high4(b);
    p->scale[0] = scale_words_k(h, lane, 0);
    p->scale[1] = scale_words_k(h, lane, 4);
}

INLINE void scales_k(const uint8_t *w, size_t stride, __m512 *d, __m512 *m)
{
    __m512i dm = lanes_dwords(w, stride);

    *d = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(dm));
    *m = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(dm, 16)));
}

INLINE void scales_q4_k(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_k(w, sizeof(struct block_q4_k), d, m);
}

INLINE void head_q5_k(const uint8_t *w, struct head256 *h)
{
    head_k(w, sizeof(struct block_q5_k), h);
}

INLINE void block_q5_k(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    __m512i a = _mm512_loadu_si512(w + 48), b = _mm512_loadu_si512(w + 112);

    p->u[0] = _mm512_or_si512(low4(a), fields(w + 16, MOVE(0, 4), MOVE(2, 4)));
    p->u[1] = _mm512_or_si512(high4(a), fields(w + 16, MOVE(1, 4), MOVE(3, 4)));
    p->u[2] = _mm512_or_si512(low4(b), fields(w + 16, MOVE(4, 4), MOVE(6, 4)));
    p->u[3] = _mm512_or_si512(high4(b), fields(w + 16, MOVE(5, 4), MOVE(7, 4)));
    p->scale[0] = scale_words_k(h, lane, 0);
    p->scale[1] = scale_words_k(h, lane, 4);
}

INLINE void scales_q5_k(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_k(w, sizeof(struct block_q5_k), d, m);
}

static const struct blocks256 blocks256_q4_k = {
    .bytes = sizeof(struct block_q4_k),
    .order = ORDER_PAIRS,
    .minima = MINIMA_EIGHT,
    .head = head_q4_k,
    .block = block_q4_k,
    .scales = scales_q4_k,
};
static const struct blocks256 blocks256_q5_k = {
    .bytes = sizeof(struct block_q5_k),
    .order = ORDER_PAIRS,
    .minima = MINIMA_EIGHT,
    .head = head_q5_k,
    .block = block_q5_k,
    .scales = scales_q5_k,
};

/* -- iq4_xs ------------------------------------------------------------------------------- */

/* Scales ls - 32 of subs 4i … 4i + 3, a lane each, as dwords: four bits of low, two of high. */
INLINE __m512i scale_dwords_iq4_xs(int low, int high, int i)
{
    const __m512i lane = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    __m512i shift = _mm512_add_epi32(lane, _mm512_set1_epi32(4 * i));
    __m512i lo = _mm512_srlv_epi32(_mm512_set1_epi32(low), _mm512_slli_epi32(shift, 2));
    __m512i hi = _mm512_srlv_epi32(_mm512_set1_epi32(high), _mm512_slli_epi32(shift, 1));

    lo = _mm512_and_si512(lo, _mm512_set1_epi32(15));
    hi = _mm512_slli_epi32(_mm512_and_si512(hi, _mm512_set1_epi32(3)), 4);
    return _mm512_sub_epi32(_mm512_or_si512(lo, hi), _mm512_set1_epi32(32));
}

INLINE void block_iq4_xs(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    __m128i values = _mm_loadu_si128((const __m128i *)iq4_values);
    __m512i table = _mm512_broadcast_i32x4(_mm_xor_si128(values, _mm_set1_epi8(-128)));
    __m512i a = _mm512_loadu_si512(w + 8), b = _mm512_loadu_si512(w + 72);

    (void)h;
    (void)lane;
    p->u[0] = _mm512_shuffle_epi8(table, low4(a));
    p->u[1] = _mm512_shuffle_epi8(table, high4(a));
    p->u[2] = _mm512_shuffle_epi8(table, low4(b));
    p->u[3] = _mm512_shuffle_epi8(table, high4(b));
    p->scale[0] = scale_dwords_iq4_xs(lanes_load32(w + 4), lanes_load16(w + 2), 0);
    p->scale[1] = scale_dwords_iq4_xs(lanes_load32(w + 4), lanes_load16(w + 2), 1);
}

INLINE void scales_iq4_xs(const uint8_t *w, __m512 *d, __m512 *m)
{
    *d = lanes_f16(w, sizeof(struct block_iq4_xs));
    *m = _mm512_setzero_ps();
}

static const struct blocks256 blocks256_iq4_xs = {
    .bytes = sizeof(struct block_iq4_xs),
    .zero = 128,
    .order = ORDER_HALVES,
    .head = head_none,
    .block = block_iq4_xs,
    .scales = scales_iq4_xs,
};

/* -- scales of sixteen -------------------------------------------------------------------- */

/* Sixteen signed bytes as words, twice, and in the order of packs() of NATURAL. */
INLINE void scale_words_16(__m128i sc, struct parts256 *p)
{
    const __m512i order =
        _mm512_setr_epi64(FOUR(0), FOUR(4), FOUR(1), FOUR(5), FOUR(2), FOUR(6), FOUR(3), FOUR(7));

    p->words = _mm512_cvtepi8_epi16(_mm256_broadcastsi128_si256(sc));
    p->scale[0] = _mm512_permutexvar_epi16(order, p->words);
    p->scale[1] = _mm512_permutexvar_epi16(_mm512_add_epi16(order, _mm512_set1_epi16(8)), p->words);
}

INLINE void block_q6_k(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    __m512i a = _mm512_loadu_si512(w), b = _mm512_loadu_si512(w + 64);
    const uint64_t f0 = MOVE(0, 4) | MOVE(1, 5), f1 = MOVE(2, 4) | MOVE(3, 5);
    const uint64_t f2 = MOVE(4, 4) | MOVE(5, 5), f3 = MOVE(6, 4) | MOVE(7, 5);

    (void)h;
    (void)lane;
    p->u[0] = _mm512_or_si512(low4(a), fields(w + 128, f0, f1));
    p->u[1] = _mm512_or_si512(high4(a), fields(w + 128, f2, f3));
    p->u[2] = _mm512_or_si512(low4(b), fields(w + 160, f0, f1));
    p->u[3] = _mm512_or_si512(high4(b), fields(w + 160, f2, f3));
    scale_words_16(_mm_loadu_si128((const __m128i *)(w + 192)), p);
}

INLINE void scales_q6_k(const uint8_t *w, __m512 *d, __m512 *m)
{
    *d = lanes_f16(w + 208, sizeof(struct block_q6_k));
    *m = _mm512_setzero_ps();
}

/* The sixteen six-bit scales of q3_k_scale(), less 32. */
INLINE __m128i scale_bytes_q3_k(const uint8_t *w)
{
    /* From two bytes before the scales, so that nothing behind the block is read. */
    __m128i raw = _mm_loadu_si128((const __m128i *)(w + 94));
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

INLINE void block_q3_k(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    const uint64_t f0 = MOVE(0, 0) | MOVE(1, 1), f1 = MOVE(2, 0) | MOVE(3, 1);
    const uint64_t f2 = MOVE(4, 0) | MOVE(5, 1), f3 = MOVE(6, 0) | MOVE(7, 1);

    (void)h;
    (void)lane;
    p->u[0] = _mm512_or_si512(fields(w + 32, f0, f1), fields(w, MOVE(0, 2), MOVE(1, 2)));
    p->u[1] = _mm512_or_si512(fields(w + 32, f2, f3), fields(w, MOVE(2, 2), MOVE(3, 2)));
    p->u[2] = _mm512_or_si512(fields(w + 64, f0, f1), fields(w, MOVE(4, 2), MOVE(5, 2)));
    p->u[3] = _mm512_or_si512(fields(w + 64, f2, f3), fields(w, MOVE(6, 2), MOVE(7, 2)));
    scale_words_16(scale_bytes_q3_k(w), p);
}

INLINE void scales_q3_k(const uint8_t *w, __m512 *d, __m512 *m)
{
    *d = lanes_f16(w + 108, sizeof(struct block_q3_k));
    *m = _mm512_setzero_ps();
}

INLINE void block_q2_k(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    const uint64_t f0 = MOVE(0, 0) | MOVE(1, 1), f1 = MOVE(2, 0) | MOVE(3, 1);
    const uint64_t f2 = MOVE(4, 0) | MOVE(5, 1), f3 = MOVE(6, 0) | MOVE(7, 1);
    __m128i raw = _mm_loadu_si128((const __m128i *)w);
    __m128i minima = _mm_and_si128(_mm_srli_epi16(raw, 4), _mm_set1_epi8(15));

    (void)h;
    (void)lane;
    p->u[0] = fields(w + 16, f0, f1);
    p->u[1] = fields(w + 16, f2, f3);
    p->u[2] = fields(w + 48, f0, f1);
    p->u[3] = fields(w + 48, f2, f3);
    scale_words_16(_mm_and_si128(raw, _mm_set1_epi8(15)), p);
    p->words = _mm512_zextsi256_si512(_mm256_cvtepu8_epi16(minima));
}

INLINE void scales_q2_k(const uint8_t *w, __m512 *d, __m512 *m)
{
    scales_k(w + 80, sizeof(struct block_q2_k), d, m);
}

/* Values 0 … 2 (3 in a hostile block), each plus one so that zero is even; the scale is one. */
INLINE void block_tq2_0(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    const uint64_t f0 = MOVE(0, 0) | MOVE(1, 1), f1 = MOVE(2, 0) | MOVE(3, 1);
    const uint64_t f2 = MOVE(4, 0) | MOVE(5, 1), f3 = MOVE(6, 0) | MOVE(7, 1);
    const __m512i one = _mm512_set1_epi8(1);

    (void)h;
    (void)lane;
    p->u[0] = _mm512_add_epi8(fields(w, f0, f1), one);
    p->u[1] = _mm512_add_epi8(fields(w, f2, f3), one);
    p->u[2] = _mm512_add_epi8(fields(w + 32, f0, f1), one);
    p->u[3] = _mm512_add_epi8(fields(w + 32, f2, f3), one);
    scale_words_16(_mm_set1_epi8(1), p);
}

INLINE void scales_tq2_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    *d = lanes_f16(w + 64, sizeof(struct block_tq2_0));
    *m = _mm512_setzero_ps();
}

/* Base-3 digits at the front of fractions of 256: one more where they pass a third, and two thirds. */
INLINE __m512i digits_plus_one(__m512i x)
{
    const __m512i one = _mm512_set1_epi8(1);
    __mmask64 third = _mm512_cmpge_epu8_mask(x, _mm512_set1_epi8(86));
    __mmask64 two_thirds = _mm512_cmpge_epu8_mask(x, _mm512_set1_epi8((char)171));
    __m512i d = _mm512_mask_add_epi8(one, third, one, one);

    return _mm512_mask_add_epi8(d, two_thirds, d, one);
}

INLINE __m512i times3(__m512i x)
{
    return _mm512_add_epi8(_mm512_add_epi8(x, x), x);
}

/*
 * x[n]: digit n at the front, of the 32 bytes for 160 weights (half 0), of the
 * 16 for 80 (lane 2), and of the 4 for 16 (first dword of lane 3).
 */
INLINE void block_tq1_0(const uint8_t *w, const struct head256 *h, int lane, struct parts256 *p)
{
    const __m512i lanes_21 = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 12, 13);
    __m512i x[5], last, tail;
    int qh = lanes_load32(w + 48);

    (void)h;
    (void)lane;
    x[0] = _mm512_inserti32x4(_mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)w)),
                              _mm_loadu_si128((const __m128i *)(w + 32)), 2);
    x[0] = _mm512_inserti32x4(x[0], _mm_cvtsi32_si128(qh), 3);
    for (size_t i = 1; i < 5; i++)
        x[i] = times3(x[i - 1]);
    last =
        _mm512_unpacklo_epi64(_mm512_unpacklo_epi32(x[0], x[1]), _mm512_unpacklo_epi32(x[2], x[3]));
    tail = _mm512_shuffle_i64x2(x[4], last, _MM_SHUFFLE(3, 3, 2, 2)); /* 2 2 | 3 3 */
    p->u[0] = digits_plus_one(_mm512_shuffle_i64x2(x[0], x[1], _MM_SHUFFLE(1, 0, 1, 0)));
    p->u[1] = digits_plus_one(_mm512_shuffle_i64x2(x[2], x[3], _MM_SHUFFLE(1, 0, 1, 0)));
    x[0] = _mm512_shuffle_i64x2(x[4], x[0], _MM_SHUFFLE(2, 2, 1, 0));
    p->u[2] = digits_plus_one(_mm512_permutex2var_epi64(x[0], lanes_21, x[1]));
    x[2] = _mm512_shuffle_i64x2(x[2], x[3], _MM_SHUFFLE(2, 2, 2, 2));
    x[2] = _mm512_shuffle_i64x2(x[2], tail, _MM_SHUFFLE(2, 0, 2, 0));
    p->u[3] = digits_plus_one(x[2]);
    scale_words_16(_mm_set1_epi8(1), p);
}

INLINE void scales_tq1_0(const uint8_t *w, __m512 *d, __m512 *m)
{
    *d = lanes_f16(w + 52, sizeof(struct block_tq1_0));
    *m = _mm512_setzero_ps();
}

static const struct blocks256 blocks256_tq1_0 = {
    .bytes = sizeof(struct block_tq1_0),
    .zero = 2,
    .head = head_none,
    .block = block_tq1_0,
    .scales = scales_tq1_0,
};
static const struct blocks256 blocks256_tq2_0 = {
    .bytes = sizeof(struct block_tq2_0),
    .zero = 2,
    .head = head_none,
    .block = block_tq2_0,
    .scales = scales_tq2_0,
};
static const struct blocks256 blocks256_q6_k = {
    .bytes = sizeof(struct block_q6_k),
    .zero = 32,
    .head = head_none,
    .block = block_q6_k,
    .scales = scales_q6_k,
};
static const struct blocks256 blocks256_q3_k = {
    .bytes = sizeof(struct block_q3_k),
    .zero = 4,
    .head = head_none,
    .block = block_q3_k,
    .scales = scales_q3_k,
};
static const struct blocks256 blocks256_q2_k = {
    .bytes = sizeof(struct block_q2_k),
    .minima = MINIMA_SIXTEEN,
    .head = head_none,
    .block = block_q2_k,
    .scales = scales_q2_k,
};
