/*
 * nvfp4 × int8 activations by vpmaddubsw: the walk of walk_avx2.h over blocks
 * of sixteen, four of them in a file's block.  |w| times a with w's sign: at
 * most 12 * 127 * 2, so that pair sums could even be added.
 */
#include "backends/cpu/avx2/nvfp4_avx2.h"
#include "backends/cpu/avx2/walk_avx2.h"

KERNEL(matvec, nvfp4, avx2);

#define PLANE (WALK_SLAB + 7)

struct call {
    int8_t q[WALK_COLS][PLANE * 16];
    float d[WALK_COLS * WALK_SLAB];
    struct walk walk;
};

/* The first seven blocks again behind the last, so that a group may begin anywhere in a row. */
INLINE void lay(struct call *call, const struct matvec *m, size_t from)
{
    size_t n = call->walk.n;

    for (size_t c = 0; c < m->cols; c++) {
        const struct act_q8_32 *a =
            (const struct act_q8_32 *)((const char *)m->act + c * m->act_stride) + from / 2;

        for (size_t i = 0, j = 0; i < n + 7; i++, j = j + 1 == n ? 0 : j + 1)
            memcpy(call->q[c] + 16 * i, a[j / 2].q + j % 2 * 16, 16);
        for (size_t i = 0; i < n; i++)
            call->d[c * WALK_SLAB + i] = a[i / 2].d;
    }
}

INLINE void group(const void *none, size_t cols, const struct call *call, const uint8_t *w,
                  size_t at, float *t)
{
    const __m256i ones = _mm256_set1_epi16(1);
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    __m256i part[WALK_COLS][4];
    __m256 d = nvfp4_scales(w);

    (void)none;
#pragma GCC unroll 4
    for (size_t i = 0; i < 4; i++) {
        __m256i q = nvfp4_bytes(w, i), size = _mm256_abs_epi8(q);

        walk_ahead(w + i * sizeof(struct block_nvfp4) / 2, sizeof(struct block_nvfp4) / 2);
        for (size_t c = 0; c < cols; c++) {
            __m256i a = _mm256_sign_epi8(load256(call->q[c] + 16 * (at + 2 * i)), q);

            part[c][i] = _mm256_madd_epi16(_mm256_maddubs_epi16(size, a), ones);
        }
    }
    for (size_t c = 0; c < cols; c++) {
        /* lane l, element i: sixteen number 2i + l */
        __m256i isum = _mm256_permutevar8x32_epi32(lanes_sum4(part[c]), order);

        _mm256_storeu_ps(t + c * WALK_T, _mm256_mul_ps(d, _mm256_cvtepi32_ps(isum)));
    }
}

INLINE void run(const struct matvec *m, const void *none, walk_group_fn *by_cols)
{
    size_t blocks = m->n / 16;
    struct call call;

    (void)none;
    for (size_t from = 0; from < blocks; from += WALK_SLAB) {
        call.walk = (struct walk){
            .bytes = sizeof(struct block_nvfp4),
            .shift = 2,
            .n = blocks - from < WALK_SLAB ? blocks - from : WALK_SLAB,
            .cols = m->cols,
            .d = call.d,
        };
        lay(&call, m, from);
        walk_slab(m, &call.walk, by_cols, &call, from);
    }
}

WALK_KERNEL(nvfp4, run, group, call, NULL)
