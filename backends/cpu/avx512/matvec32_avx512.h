/*
 * matvec32_avx512 - the matvec of a format of 32 weights, from its blocks32.
 *
 * Weights are bytes 0 … 255, weight plus zero; zero * Σ a is taken off after
 * the sum.  Activations are laid out once per call as the weights come: the
 * first and the second sixteen of every block, each in its own plane, the
 * first fifteen blocks again behind the last, so that a group may begin
 * anywhere in a row.
 */
#pragma once

#include "backends/cpu/avx512/blocks32_avx512.h"
#include "backends/cpu/avx512/walk_avx512.h"

#define PLANE32 (WALK_SLAB + 15)

struct column32 {
    int8_t lo[PLANE32 * 16];
    int8_t hi[PLANE32 * 16];
    int32_t sum[PLANE32];
};

struct call32 {
    struct column32 column[WALK_COLS];
    float d[WALK_COLS * WALK_SLAB];
    struct walk walk;
};

INLINE void call32_lay(struct call32 *call, const struct matvec *m, size_t from)
{
    size_t n = call->walk.n;

    for (size_t c = 0; c < m->cols; c++) {
        const struct act_q8_32 *a =
            (const struct act_q8_32 *)((const char *)m->act + c * m->act_stride) + from;
        struct column32 *to = &call->column[c];

        for (size_t i = 0, j = 0; i < n + 15; i++, j = j + 1 == n ? 0 : j + 1) {
            memcpy(to->lo + 16 * i, a[j].q, 16);
            memcpy(to->hi + 16 * i, a[j].q + 16, 16);
            to->sum[i] = a[j].sum;
        }
        for (size_t i = 0; i < n; i++)
            call->d[c * WALK_SLAB + i] = a[i].d;
    }
}

INLINE void group32(const struct blocks32 *f, size_t cols, const struct call32 *call,
                    const uint8_t *w, size_t at, float *t)
{
    __m512i part[WALK_COLS][4];
    __m512 d, m;

#pragma GCC unroll 4
    for (size_t g = 0; g < 4; g++) {
        __m512i lo, hi;

        f->four(w + (4 * g * f->bytes >> f->shift), &lo, &hi);
        walk_ahead(w + (4 * g * f->bytes >> f->shift), 4 * f->bytes >> f->shift);
#pragma GCC unroll 4
        for (size_t c = 0; c < cols; c++) {
            const struct column32 *a = &call->column[c];
            __m512i p = _mm512_setzero_si512();

            p = _mm512_dpbusd_epi32(p, lo, _mm512_loadu_si512(a->lo + 16 * (at + 4 * g)));
            part[c][g] = _mm512_dpbusd_epi32(p, hi, _mm512_loadu_si512(a->hi + 16 * (at + 4 * g)));
        }
    }
    f->scales(w, &d, &m);
#pragma GCC unroll 4
    for (size_t c = 0; c < cols; c++) {
        __m512i *p = part[c];
        __m512i isum = lanes_flip(lanes_sum4(p[0], p[1], p[2], p[3]));
        __m512i asum = _mm512_loadu_si512(call->column[c].sum + at);
        __m512 v;

        if (f->zero)
            isum = _mm512_sub_epi32(isum, _mm512_mullo_epi32(asum, _mm512_set1_epi32(f->zero)));
        if (f->offset)
            v = _mm512_fmadd_ps(d, _mm512_cvtepi32_ps(isum),
                                _mm512_mul_ps(m, _mm512_cvtepi32_ps(asum)));
        else
            v = _mm512_mul_ps(d, _mm512_cvtepi32_ps(isum));
        _mm512_storeu_ps(t + c * WALK_T, v);
    }
}

INLINE void matvec32(const struct matvec *m, const struct blocks32 *f, walk_group_fn *group)
{
    size_t blocks = m->n / 32;
    struct call32 call;

    for (size_t from = 0; from < blocks; from += WALK_SLAB) {
        call.walk = (struct walk){
            .bytes = f->bytes,
            .shift = f->shift,
            .n = blocks - from < WALK_SLAB ? blocks - from : WALK_SLAB,
            .cols = m->cols,
            .d = call.d,
        };
        call32_lay(&call, m, from);
        walk_slab(m, &call.walk, group, &call, from);
    }
}

#define MATVEC32(fmt) WALK_KERNEL(fmt, matvec32, group32, &blocks32_##fmt)
