/*
 * nvfp4 × int8 activations by VNNI: the walk of walk_avx512.h over blocks of
 * sixteen, four of them in a file's block.  Weights are bytes 0 … 24, twice
 * the weight plus twelve; twelve times the sum of the activations goes off.
 */
#include "backends/cpu/avx512/nvfp4_avx512.h"
#include "backends/cpu/avx512/walk_avx512.h"

KERNEL(matvec, nvfp4, avx512);

#define ZERO  12
#define PLANE (WALK_SLAB + 15)

struct call {
    int8_t q[WALK_COLS][PLANE * 16];
    int32_t below[WALK_COLS][PLANE]; /* -ZERO * Σ a of sixteen */
    float d[WALK_COLS * WALK_SLAB];
    struct walk walk;
};

/* The first fifteen blocks again behind the last, so that a group may begin anywhere in a row. */
INLINE void lay(struct call *call, const struct matvec *m, size_t from)
{
    size_t n = call->walk.n;

    for (size_t c = 0; c < m->cols; c++) {
        const struct act_q8_32 *a =
            (const struct act_q8_32 *)((const char *)m->act + c * m->act_stride) + from / 2;

        for (size_t i = 0, j = 0; i < n + 15; i++, j = j + 1 == n ? 0 : j + 1) {
            __m128i q = _mm_loadu_si128((const __m128i *)(a[j / 2].q + j % 2 * 16));
            __m128i sum = _mm_dpbusd_epi32(_mm_setzero_si128(), _mm_set1_epi8(ZERO), q);

            _mm_storeu_si128((__m128i *)(call->q[c] + 16 * i), q);
            sum = _mm_hadd_epi32(sum, sum);
            call->below[c][i] = -_mm_cvtsi128_si32(_mm_hadd_epi32(sum, sum));
        }
        for (size_t i = 0; i < n; i++)
            call->d[c * WALK_SLAB + i] = a[i / 2].d;
    }
}

INLINE void group(const void *none, size_t cols, const struct call *call, const uint8_t *w,
                  size_t at, float *t)
{
    const size_t bytes = sizeof(struct block_nvfp4);
    __m512 d = lanes_ue4m3(lanes_dwords4(w, bytes));
    __m512i part[WALK_COLS][4];

    (void)none;
#pragma GCC unroll 4
    for (size_t g = 0; g < 4; g++) {
        __m512i u = nvfp4_bytes(w + g * bytes, ZERO);

        walk_ahead(w + g * bytes, bytes);
#pragma GCC unroll 4
        for (size_t c = 0; c < cols; c++)
            part[c][g] = _mm512_dpbusd_epi32(_mm512_setzero_si512(), u,
                                             _mm512_loadu_si512(call->q[c] + 16 * (at + 4 * g)));
    }
#pragma GCC unroll 4
    for (size_t c = 0; c < cols; c++) {
        const __m512i *p = part[c];
        __m512i isum = lanes_flip(lanes_sum4(p[0], p[1], p[2], p[3]));

        isum = _mm512_add_epi32(isum, _mm512_loadu_si512(call->below[c] + at));
        _mm512_storeu_ps(t + c * WALK_T, _mm512_mul_ps(d, _mm512_cvtepi32_ps(isum)));
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

WALK_KERNEL(nvfp4, run, group, NULL)
