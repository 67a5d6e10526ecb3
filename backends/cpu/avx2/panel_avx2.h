/*
 * panel_avx2 - the matrix product of many columns: weights decoded to panels
 * of 16 rows, activations laid out in tiles of twelve columns.
 *
 * Both are 16-bit words, pairs of k side by side; the integer scales of the
 * 256-weight formats are folded into the weights (|q * scale| <= 4096), so a
 * block is nothing but vpmaddwd and additions, with no saturation to fear.  A
 * step covers 16 rows x 4 columns.
 *
 * Tiles are made from canonical rows in the thread's scratch: one tile serves
 * a group of panels, which costs a few percent and needs no pack kernel.
 * Rows are taken in slabs; the accumulators rest in y between them.
 */
#pragma once

#include "backends/cpu/avx2/lanes_avx2.h"
#include "backends/cpu/kernels.h"

#define PANEL_ROWS  16
#define PANEL_SLAB  1024
#define PANEL_GROUP 8
#define TILE_COLS   12
#define STEP_COLS   4

/* With two scales m is the scale of the second sixteen. */
struct panel32 {
    int16_t q[16][PANEL_ROWS][2];
    float d[PANEL_ROWS];
    float m[PANEL_ROWS];
};

struct tile32 {
    int16_t q[16][TILE_COLS][2];
    float d[TILE_COLS];
    float sum[TILE_COLS];
};

struct panel256 {
    int16_t q[128][PANEL_ROWS][2];
    int16_t minima[8][PANEL_ROWS][2];
    float d[PANEL_ROWS];
    float m[PANEL_ROWS];
};

struct tile256 {
    int16_t q[128][TILE_COLS][2];
    int16_t sums[8][TILE_COLS][2];
    float d[TILE_COLS];
    float pad[4];
};

/* Panels of a group lie close, so a short row needs less; at the longest slab: */
_Static_assert(PANEL_SLAB / 256 *
                       (PANEL_GROUP * sizeof(struct panel256) + sizeof(struct tile256)) <=
                   KERNELS_SCRATCH_BYTES(PANEL_SLAB),
               "a slab of panels and a tile fit");
_Static_assert(PANEL_SLAB / 32 * (PANEL_GROUP * sizeof(struct panel32) + sizeof(struct tile32)) <=
                   KERNELS_SCRATCH_BYTES(PANEL_SLAB),
               "a slab of panels and a tile fit");

/* -- formats: one row decoded, what transposition starts from ------------------------------- */

struct decoded256 {
    int16_t q[256]; /* weight times scale */
    uint8_t minima[16];
    float d;
    float m;
};

struct source256 {
    size_t bytes;
    bool minima;
    void (*decode)(const uint8_t *block, struct decoded256 *to);
};

/* Eight blocks of 32 of one row. */
struct decoded32 {
    int16_t q[256];
    float d[8];
    float m[8];
};

struct source32 {
    size_t bytes; /* of 1 << shift blocks */
    size_t shift;
    bool offset;
    bool two_scales; /* nvfp4: d of the first sixteen, m of the second */
    void (*decode)(const uint8_t *blocks, struct decoded32 *to);
};

void gemm256_avx2(const struct gemm *g, const struct source256 *f);
void gemm32_avx2(const struct gemm *g, const struct source32 *f);

/* -- where a panel x tile goes ------------------------------------------------------------------ */

struct tile_out {
    float *y;
    size_t stride;
    size_t cols;
    __m256i mask[2]; /* rows */
    bool first;      /* of the slabs: accumulators begin at zero, else where y left them */
};

/* acc[2c] and acc[2c + 1] are the rows of column c. */
INLINE void tile_load(const struct tile_out *out, float acc[2 * TILE_COLS][8])
{
    for (size_t i = 0; i < 2 * TILE_COLS; i++) {
        __m256 v = _mm256_setzero_ps();

        if (!out->first && i / 2 < out->cols)
            v = _mm256_maskload_ps(out->y + i / 2 * out->stride + i % 2 * 8, out->mask[i % 2]);
        _mm256_store_ps(acc[i], v);
    }
}

INLINE void tile_store(const struct tile_out *out, float acc[2 * TILE_COLS][8])
{
    for (size_t i = 0; i < 2 * out->cols; i++)
        _mm256_maskstore_ps(out->y + i / 2 * out->stride + i % 2 * 8, out->mask[i % 2],
                            _mm256_load_ps(acc[i]));
}

INLINE void tile_out_init(struct tile_out *out, const struct gemm *g, size_t row, size_t col,
                          bool first)
{
    size_t rows = g->rows - row, cols = g->cols - col;

    out->y = g->y + col * g->y_stride + row;
    out->stride = g->y_stride;
    out->cols = cols < TILE_COLS ? cols : TILE_COLS;
    out->mask[0] = lanes_mask(rows);
    out->mask[1] = rows > 8 ? lanes_mask(rows - 8) : _mm256_setzero_si256();
    out->first = first;
}

/* -- shared inner parts -------------------------------------------------------------------------- */

/* Sixteen rows' words, 16 bytes (four pairs) at a time, into a panel's q. */
INLINE void panel_put(const int16_t *rows, size_t stride, size_t pairs,
                      int16_t (*to)[PANEL_ROWS][2])
{
    for (size_t k = 0; k < pairs; k += 4)
        for (size_t half = 0; half < PANEL_ROWS; half += 8) {
            __m256i x[4];

            lanes_transpose8((const char *)(rows + 2 * k) + half * stride, stride, x);
            for (size_t i = 0; i < 4; i++)
                _mm256_storeu_si256((__m256i *)to[k + i][half], x[i]);
        }
}

/* Bytes of twelve columns as words, four pairs at a time. */
INLINE void tile_put(const int8_t *const at[TILE_COLS], size_t pairs, int16_t (*to)[TILE_COLS][2])
{
    for (size_t k = 0; k < pairs; k += 4)
        for (size_t c = 0; c < TILE_COLS; c += 4) {
            __m128i x[4], a, b, d, e;

            for (size_t i = 0; i < 4; i++)
                x[i] = _mm_cvtepi8_epi16(
                    _mm_loadl_epi64((const __m128i *)(const void *)(at[c + i] + 2 * k)));
            a = _mm_unpacklo_epi32(x[0], x[1]);
            b = _mm_unpackhi_epi32(x[0], x[1]);
            d = _mm_unpacklo_epi32(x[2], x[3]);
            e = _mm_unpackhi_epi32(x[2], x[3]);
            _mm_storeu_si128((__m128i *)to[k][c], _mm_unpacklo_epi64(a, d));
            _mm_storeu_si128((__m128i *)to[k + 1][c], _mm_unpackhi_epi64(a, d));
            _mm_storeu_si128((__m128i *)to[k + 2][c], _mm_unpacklo_epi64(b, e));
            _mm_storeu_si128((__m128i *)to[k + 3][c], _mm_unpackhi_epi64(b, e));
        }
}

/* Sums of pairs of 16 rows x 4 columns. */
INLINE void pairs_step(const int16_t (*q)[PANEL_ROWS][2], const int16_t (*a)[TILE_COLS][2],
                       size_t col, size_t pairs, __m256i s[8])
{
    for (size_t i = 0; i < 8; i++)
        s[i] = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (size_t k = 0; k < pairs; k++) {
        __m256i w0 = load256(q[k][0]), w1 = load256(q[k][8]);

#pragma GCC unroll 4
        for (size_t c = 0; c < STEP_COLS; c++) {
            __m256i x = _mm256_set1_epi32(*(const int32_t *)(const void *)a[k][col + c]);

            s[2 * c] = _mm256_add_epi32(s[2 * c], _mm256_madd_epi16(w0, x));
            s[2 * c + 1] = _mm256_add_epi32(s[2 * c + 1], _mm256_madd_epi16(w1, x));
        }
    }
}
