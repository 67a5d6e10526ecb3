/*
 * matvec256_avx2 - the matvec of a format of 256 weights, from its blocks256.
 * Activations are read where they lie.
 */
#pragma once

#include "backends/cpu/avx2/blocks256_avx2.h"
#include "backends/cpu/avx2/walk_avx2.h"

struct call256 {
    const struct act_q8_256 *a[WALK_COLS];
    float d[WALK_COLS * WALK_SLAB];
    struct walk walk;
};

/* Eight dwords that add up to isum; minima: *mins to msum. */
INLINE __m256i block256(const struct blocks256 *f, const struct parts256 *p,
                        const struct act_q8_256 *a, __m256i *mins)
{
    __m256i sum = _mm256_setzero_si256();
    __m256i beside = _mm256_madd_epi16(p->words, load256(a->sums));

#pragma GCC unroll 8
    for (size_t j = 0; j < 8; j++) {
        __m256i q = load256(a->q + 32 * j);
        __m256i pairs = f->is_signed ? _mm256_maddubs_epi16(_mm256_abs_epi8(p->u[j]),
                                                            _mm256_sign_epi8(q, p->u[j]))
                                     : _mm256_maddubs_epi16(p->u[j], q);

        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, p->scale[j]));
    }
    if (f->zero)
        sum = _mm256_sub_epi32(sum, _mm256_mullo_epi32(beside, _mm256_set1_epi32(f->zero)));
    if (f->minima)
        *mins = beside;
    return sum;
}

INLINE void group256(const struct blocks256 *f, size_t cols, const struct call256 *call,
                     const uint8_t *w, size_t at, float *t)
{
    __m256i sum[WALK_COLS][8], mins[WALK_COLS][8];
    __m256 d, m;
    size_t b = at;

    for (size_t i = 0; i < 8; i++) {
        struct parts256 p;

        f->block(w + i * f->bytes, &p);
        walk_ahead(w + i * f->bytes, f->bytes);
        for (size_t c = 0; c < cols; c++)
            sum[c][i] = block256(f, &p, call->a[c] + b, &mins[c][i]);
        b = b + 1 == call->walk.n ? 0 : b + 1;
    }
    f->scales(w, &d, &m);
    for (size_t c = 0; c < cols; c++) {
        __m256 isum = _mm256_cvtepi32_ps(lanes_sum8(sum[c]));
        __m256 v = _mm256_mul_ps(d, isum);

        if (f->minima)
            v = _mm256_fmsub_ps(d, isum, _mm256_mul_ps(m, _mm256_cvtepi32_ps(lanes_sum8(mins[c]))));
        _mm256_storeu_ps(t + c * WALK_T, v);
    }
}

INLINE void matvec256(const struct matvec *m, const struct blocks256 *f, walk_group_fn *group)
{
    size_t blocks = m->n / 256;
    struct call256 call;

    for (size_t from = 0; from < blocks; from += WALK_SLAB) {
        size_t n = blocks - from < WALK_SLAB ? blocks - from : WALK_SLAB;

        for (size_t c = 0; c < m->cols; c++) {
            call.a[c] =
                (const struct act_q8_256 *)((const char *)m->act + c * m->act_stride) + from;
            for (size_t i = 0; i < n; i++)
                call.d[c * WALK_SLAB + i] = call.a[c][i].d;
        }
        call.walk = (struct walk){.bytes = f->bytes, .n = n, .cols = m->cols, .d = call.d};
        walk_slab(m, &call.walk, group, &call, from);
    }
}

#define MATVEC256(fmt) WALK_KERNEL(fmt, matvec256, group256, call256, &blocks256_##fmt)
