/*
 * matvec256_avx512 - the matvec of a format of 256 weights, from its blocks256.
 *
 * Activations are laid out once per call in the format's order.  Four blocks
 * are summed at a time, sixteen make a group of the walk.
 */
#pragma once

#include "backends/cpu/avx512/blocks256_avx512.h"
#include "backends/cpu/avx512/walk_avx512.h"

#define SLAB256 64 /* blocks of a row at a time, at most */

struct column256 {
    int8_t q[SLAB256 * 256];
    int16_t words[SLAB256 * 32];       /* what parts256.words meets */
    int32_t below[SLAB256 * 32];       /* HALVES: -zero * Σ of the eight a of a dword's two sums */
    int16_t sum32[(SLAB256 + 15) * 8]; /* the first fifteen again at the end */
};

struct call256 {
    struct column256 column[WALK_COLS];
    float d[WALK_COLS * WALK_SLAB];
    struct walk walk;
};

/* HALVES: four subs of 32 become four first and four second sixteens. */
INLINE void lay_halves(const int8_t *q, int8_t *to)
{
    for (size_t i = 0; i < 16; i++)
        memcpy(to + i / 8 * 128 + i % 2 * 64 + i % 8 / 2 * 16, q + 16 * i, 16);
}

/* PAIRS: subs 1 and 2, 5 and 6 change places. */
INLINE void lay_q(const int8_t *q, enum order256 order, int8_t *to)
{
    static const uint8_t pairs[8] = {0, 2, 1, 3, 4, 6, 5, 7};

    if (order == ORDER_NATURAL)
        memcpy(to, q, 256);
    else if (order == ORDER_HALVES)
        lay_halves(q, to);
    else
        for (size_t i = 0; i < 8; i++)
            memcpy(to + 32 * i, q + 32 * pairs[i], 32);
}

INLINE void lay_sums(const struct act_q8_256 *a, const struct blocks256 *f, int16_t words[32])
{
    for (size_t j = 0; j < 16; j++) {
        /* |zero / 2 * sum| <= 16 * 16 * 127 = 32512 */
        words[j] = f->zero ? (int16_t)(-f->zero / 2 * a->sums[j]) : a->sums[j];
        words[j + 16] = words[j];
    }
}

INLINE void lay_below(const int8_t *q, int zero, int32_t below[32])
{
    const __m512i z = _mm512_set1_epi32(-zero), ones = _mm512_set1_epi8(1);

    for (size_t i = 0; i < 2; i++) {
        __m512i sum = _mm512_setzero_si512();

        sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(q + 128 * i));
        sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(q + 128 * i + 64));
        _mm512_storeu_si512(below + 16 * i, _mm512_mullo_epi32(sum, z));
    }
}

INLINE void call256_lay(struct call256 *call, const struct matvec *m, const struct blocks256 *f,
                        size_t from)
{
    size_t n = call->walk.n;

    for (size_t c = 0; c < m->cols; c++) {
        const struct act_q8_256 *a =
            (const struct act_q8_256 *)((const char *)m->act + c * m->act_stride) + from;
        struct column256 *to = &call->column[c];

        for (size_t i = 0; i < n; i++) {
            lay_q(a[i].q, f->order, to->q + 256 * i);
            if (f->order == ORDER_HALVES)
                lay_below(to->q + 256 * i, f->zero, to->below + 32 * i);
            else if (f->minima != MINIMA_EIGHT)
                lay_sums(&a[i], f, to->words + 32 * i);
            call->d[c * WALK_SLAB + i] = a[i].d;
        }
        if (f->minima == MINIMA_EIGHT)
            for (size_t i = 0, b = 0; i < n + 15; i++, b = b + 1 == n ? 0 : b + 1)
                for (size_t j = 0; j < 8; j++)
                    to->sum32[8 * i + j] = (int16_t)(a[b].sums[2 * j] + a[b].sums[2 * j + 1]);
    }
}

/* The same for HALVES: the sums begin at -zero * Σ a. */
INLINE __m512i halves256(const struct parts256 *p, const struct column256 *a, size_t b)
{
    const int8_t *q = a->q + 256 * b;
    __m512i p0 = _mm512_loadu_si512(a->below + 32 * b);
    __m512i p1 = _mm512_loadu_si512(a->below + 32 * b + 16);

    p0 = _mm512_dpbusd_epi32(p0, p->u[0], _mm512_loadu_si512(q));
    p0 = _mm512_dpbusd_epi32(p0, p->u[1], _mm512_loadu_si512(q + 64));
    p1 = _mm512_dpbusd_epi32(p1, p->u[2], _mm512_loadu_si512(q + 128));
    p1 = _mm512_dpbusd_epi32(p1, p->u[3], _mm512_loadu_si512(q + 192));
    return _mm512_add_epi32(_mm512_mullo_epi32(p0, p->scale[0]),
                            _mm512_mullo_epi32(p1, p->scale[1]));
}

/* Sixteen dwords that add up to isum; MINIMA_SIXTEEN: *mins to msum. */
INLINE __m512i block256(const struct blocks256 *f, const struct parts256 *p,
                        const struct column256 *a, size_t b, __m512i *mins)
{
    const __m512i zero = _mm512_setzero_si512();
    __m512i x[4], sum;

    for (size_t i = 0; i < 4; i++) {
        __m512i q = _mm512_loadu_si512(a->q + 256 * b + 64 * i);

        if (f->is_signed)
            q = _mm512_mask_sub_epi8(q, p->minus[i], zero, q);
        x[i] = _mm512_dpbusd_epi32(zero, p->u[i], q);
    }
    sum = _mm512_madd_epi16(_mm512_packs_epi32(x[0], x[1]), p->scale[0]);
    sum = _mm512_dpwssd_epi32(sum, _mm512_packs_epi32(x[2], x[3]), p->scale[1]);
    if (f->zero)
        sum = _mm512_dpwssd_epi32(sum, p->words, _mm512_loadu_si512(a->words + 32 * b));
    if (f->minima == MINIMA_SIXTEEN)
        *mins = _mm512_madd_epi16(p->words, _mm512_loadu_si512(a->words + 32 * b));
    return sum;
}

/* Four blocks → for each column a vector of lane sums of isum (*x) and of msum (*y). */
INLINE void four256(const struct blocks256 *f, size_t cols, const struct call256 *call,
                    const uint8_t *w, size_t at, size_t turn, __m512i *x, __m512i *y)
{
    __m512i sum[WALK_COLS][4], mins[WALK_COLS][4];
    struct head256 h;
    size_t b = at;

    f->head(w, &h);
#pragma GCC unroll 4
    for (size_t l = 0; l < 4; l++, w += f->bytes) {
        struct parts256 p;

        f->block(w, &h, (int)l, &p);
        walk_ahead(w, f->bytes);
        for (size_t c = 0; c < cols; c++)
            sum[c][l] = f->order == ORDER_HALVES
                            ? halves256(&p, &call->column[c], b)
                            : block256(f, &p, &call->column[c], b, &mins[c][l]);
        b = b + 1 == call->walk.n ? 0 : b + 1;
    }
    for (size_t c = 0; c < cols; c++) {
        x[4 * c] = lanes_sum4(sum[c][0], sum[c][1], sum[c][2], sum[c][3]);
        if (f->minima == MINIMA_EIGHT)
            y[4 * c] =
                _mm512_madd_epi16(h.minima, _mm512_loadu_si512(call->column[c].sum32 + 8 * turn));
        if (f->minima == MINIMA_SIXTEEN)
            y[4 * c] = lanes_sum4(mins[c][0], mins[c][1], mins[c][2], mins[c][3]);
    }
}

INLINE void group256(const struct blocks256 *f, size_t cols, const struct call256 *call,
                     const uint8_t *w, size_t at, float *t)
{
    __m512i x[WALK_COLS * 4], y[WALK_COLS * 4];
    __m512 d, m;
    size_t b = at;

    for (size_t g = 0; g < 4; g++) {
        four256(f, cols, call, w + 4 * g * f->bytes, b, at + 4 * g, x + g, y + g);
        for (size_t i = 0; i < 4; i++)
            b = b + 1 == call->walk.n ? 0 : b + 1;
    }
    f->scales(w, &d, &m);
    for (size_t c = 0; c < cols; c++) {
        const __m512i *xc = x + 4 * c, *yc = y + 4 * c;
        __m512 isum = _mm512_cvtepi32_ps(lanes_sum_across(xc[0], xc[1], xc[2], xc[3]));
        __m512i msum;

        if (f->minima == MINIMA_NONE) {
            _mm512_storeu_ps(t + c * WALK_T, _mm512_mul_ps(d, isum));
            continue;
        }
        msum = f->minima == MINIMA_EIGHT ? lanes_flip(lanes_sum4(yc[0], yc[1], yc[2], yc[3]))
                                         : lanes_sum_across(yc[0], yc[1], yc[2], yc[3]);
        _mm512_storeu_ps(t + c * WALK_T,
                         _mm512_fmsub_ps(d, isum, _mm512_mul_ps(m, _mm512_cvtepi32_ps(msum))));
    }
}

INLINE void matvec256(const struct matvec *m, const struct blocks256 *f, walk_group_fn *group)
{
    size_t blocks = m->n / 256;
    struct call256 call;

    for (size_t from = 0; from < blocks; from += SLAB256) {
        call.walk = (struct walk){
            .bytes = f->bytes,
            .n = blocks - from < SLAB256 ? blocks - from : SLAB256,
            .cols = m->cols,
            .d = call.d,
        };
        call256_lay(&call, m, f, from);
        walk_slab(m, &call.walk, group, &call, from);
    }
}

#define MATVEC256(fmt) WALK_KERNEL(fmt, matvec256, group256, &blocks256_##fmt)
