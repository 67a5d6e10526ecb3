/*
 * walk_avx512 - the walk of walk.h, sixteen blocks and sixteen rows at a time, and
 * the bodies of a kernel.
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/cpu/avx512/vec_avx512.h"

INLINE void walk_prefetch(const void *at)
{
    _mm_prefetch(at, _MM_HINT_T1);
}

INLINE void walk_four(const float *const row[VEC_WIDTH], size_t b, vec x[4])
{
    __m512i bits[4];

    for (size_t g = 0; g < 4; g++)
        bits[g] = lanes_load(row[g] + b, row[g + 4] + b, row[g + 8] + b, row[g + 12] + b);
    lanes_transpose4(bits);
    for (size_t i = 0; i < 4; i++)
        x[i] = _mm512_castsi512_ps(bits[i]);
}

#include "backends/cpu/walk.h"

/* The kernel of a format: one body per number of columns, so that each is a loop without choices. */
#define WALK_KERNEL(fmt, run, group, of)                                                           \
    INLINE void group_1(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 1, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_2(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 2, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_3(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 3, arg, w, at, t);                                                               \
    }                                                                                              \
    INLINE void group_4(const void *arg, const uint8_t *w, size_t at, float *t)                    \
    {                                                                                              \
        group(of, 4, arg, w, at, t);                                                               \
    }                                                                                              \
    void matvec_##fmt##_avx512(const struct matvec *m)                                             \
    {                                                                                              \
        switch (m->cols) {                                                                         \
        case 1: run(m, of, group_1); break;                                                        \
        case 2: run(m, of, group_2); break;                                                        \
        case 3: run(m, of, group_3); break;                                                        \
        default: run(m, of, group_4); break;                                                       \
        }                                                                                          \
    }
