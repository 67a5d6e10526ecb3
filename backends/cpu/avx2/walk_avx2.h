/*
 * walk_avx2 - the walk of walk.h, eight blocks and eight rows at a time, and
 * the bodies of a kernel.
 */
#pragma once

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/cpu/avx2/vec_avx2.h"

INLINE void walk_prefetch(const void *at)
{
    _mm_prefetch(at, _MM_HINT_T1);
}

INLINE void walk_four(const float *const row[VEC_WIDTH], size_t b, vec x[4])
{
    __m256i bits[4];

    for (size_t g = 0; g < 4; g++)
        bits[g] = lanes_load(row[g] + b, row[g + 4] + b);
    lanes_transpose4(bits);
    for (size_t i = 0; i < 4; i++)
        x[i] = _mm256_castsi256_ps(bits[i]);
}

#include "backends/cpu/walk.h"

/* The kernel of a format: one body for one column, one for more. */
#define WALK_KERNEL(fmt, run, group, call_type, of)                                                \
    INLINE void group_1(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 1, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_n(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        const struct call_type *call = arg;                                                        \
                                                                                                   \
        group(of, call->walk.cols, call, w, at, t);                                                \
    }                                                                                              \
    void matvec_##fmt##_avx2(const struct matvec *m)                                               \
    {                                                                                              \
        if (m->cols == 1)                                                                          \
            run(m, of, group_1);                                                                   \
        else                                                                                       \
            run(m, of, group_n);                                                                   \
    }
