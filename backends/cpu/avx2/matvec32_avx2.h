/*
 * matvec32_avx2 - the matvec of a format of 32 weights, from its blocks32.
 *
 * Activations are copied once per call, the first seven blocks again behind
 * the last, so that a group may begin anywhere in a row.
 */
#pragma once

#include "backends/cpu/avx2/blocks32_avx2.h"
#include "backends/cpu/avx2/walk_avx2.h"

#define PLANE32 (WALK_SLAB + 7)

struct column32 {
    int8_t q[PLANE32 * 32];
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

        for (size_t i = 0, j = 0; i < n + 7; i++, j = j + 1 == n ? 0 : j + 1) {
            memcpy(to->q + 32 * i, a[j].q, 32);
            to->sum[i] = a[j].sum;
        }
        for (size_t i = 0; i < n; i++)
            call->d[c * WALK_SLAB + i] = a[i].d;
    }
}

/* Eight dwords that add up to Σ w * a. */
INLINE __m256i dot32(const struct blocks32 *f, __m256i w, __m256i a)
{
    const __m256i ones = _mm256_set1_epi16(1);

    if (f->small)
        return _mm256_madd_epi16(_mm256_maddubs_epi16(w, a), ones);
    return _mm256_madd_epi16(_mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(a, w)),
                             ones);
}

INLINE void group32(const struct blocks32 *f, size_t cols, const struct call32 *call,
                    const uint8_t *w, size_t at, float *t)
{
    __m256i part[WALK_COLS][8];
    __m256 d, m;

#pragma GCC unroll 8
    for (size_t i = 0; i < 8; i++) {
        __m256i block = f->block(w, i);

        walk_ahead(w + (i * f->bytes >> f->shift), f->bytes >> f->shift);
        for (size_t c = 0; c < cols; c++)
            part[c][i] = dot32(f, block, load256(call->column[c].q + 32 * (at + i)));
    }
    f->scales(w, &d, &m);
    for (size_t c = 0; c < cols; c++) {
        __m256i isum = lanes_sum8(part[c]);
        __m256i asum = load256(call->column[c].sum + at);
        __m256 v;

        if (f->zero)
            isum = _mm256_sub_epi32(isum, _mm256_mullo_epi32(asum, _mm256_set1_epi32(f->zero)));
        if (f->offset)
            v = _mm256_fmadd_ps(d, _mm256_cvtepi32_ps(isum),
                                _mm256_mul_ps(m, _mm256_cvtepi32_ps(asum)));
        else
            v = _mm256_mul_ps(d, _mm256_cvtepi32_ps(isum));
        _mm256_storeu_ps(t + c * WALK_T, v);
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

#define MATVEC32(fmt) WALK_KERNEL(fmt, matvec32, group32, call32, &blocks32_##fmt)
