/*
 * panel_avx512 - the matrix product of many columns: weights decoded to panels
 * of 32 rows, activations packed in tiles of twelve columns.
 *
 * A tile holds activations plus 128 as unsigned bytes, dwords of four k side
 * by side for the twelve columns; a panel holds weights as signed bytes,
 * dwords of four k for the 32 rows.  One vpdpbusd multiplies a broadcast dword
 * of a column with sixteen rows.  What the 128 adds depends on the row alone:
 * its negative, nc, is where the sums begin.  A step covers 32 rows x 6
 * columns: two loads and six broadcasts feed twelve vpdpbusd, so neither loads
 * nor registers (12 sums, 12 totals) run out.
 *
 * Rows are taken in slabs of 2048 weights, so that four panels stay in L2; the
 * accumulators rest in y between slabs, which keeps the order of kernels.h.
 */
#pragma once

#include "backends/cpu/avx512/lanes_avx512.h"
#include "backends/cpu/kernels.h"

#define PANEL_ROWS  32
#define PANEL_SLAB  2048
#define PANEL_GROUP 4 /* panels that a tile meets while it is in L1 */
#define TILE_HALF   6

/* -- tiles, as pack writes them ----------------------------------------------------------- */

struct tile32 {
    uint8_t q[8][KERNELS_TILE_COLS][4];
    float d[KERNELS_TILE_COLS];
    float sum[KERNELS_TILE_COLS];
};
_Static_assert(sizeof(struct tile32) == KERNELS_TILE_COLS * sizeof(struct act_q8_32), "tile32");

struct tile256 {
    uint8_t q[64][KERNELS_TILE_COLS][4];
    int16_t sum32[4][KERNELS_TILE_COLS][2];
    int16_t sum16[8][KERNELS_TILE_COLS][2];
    float d[KERNELS_TILE_COLS];
    uint8_t pad[144];
};
_Static_assert(sizeof(struct tile256) == KERNELS_TILE_COLS * sizeof(struct act_q8_256), "tile256");

/* -- panels: one block of 32 rows ------------------------------------------------------------ */

/* With two scales: nc is two words, one for each sixteen, and m the scale of the second. */
struct panel32 {
    int8_t q[8][PANEL_ROWS][4];
    int32_t nc[PANEL_ROWS]; /* -128 * Σ q */
    float d[PANEL_ROWS];
    float m[PANEL_ROWS];
};

struct panel256 {
    int8_t q[64][PANEL_ROWS][4];
    int32_t scale[16][PANEL_ROWS];
    int16_t minima[8][PANEL_ROWS][2];
    int32_t nc[PANEL_ROWS]; /* -128 * Σ scale * Σ q */
    float d[PANEL_ROWS];
    float m[PANEL_ROWS];
};
/* Panels of a group lie close, so a short row needs less; at the longest slab: */
_Static_assert(PANEL_GROUP *(PANEL_SLAB / 256) * sizeof(struct panel256) <=
                   KERNELS_SCRATCH_BYTES(PANEL_SLAB),
               "panels fit");
_Static_assert(PANEL_GROUP *(PANEL_SLAB / 32) * sizeof(struct panel32) <=
                   KERNELS_SCRATCH_BYTES(PANEL_SLAB),
               "panels fit");

/* -- where a panel x tile goes ------------------------------------------------------------------ */

struct tile_out {
    float *y;
    size_t stride;
    size_t cols;
    __mmask16 mask[2]; /* rows */
    bool first;        /* of the slabs: accumulators begin at zero, else where y left them */
};

INLINE void tile_out_init(struct tile_out *out, const struct gemm *g, size_t row, size_t col,
                          bool first)
{
    size_t rows = g->rows - row, cols = g->cols - col;

    out->y = g->y + col * g->y_stride + row;
    out->stride = g->y_stride;
    out->cols = cols < KERNELS_TILE_COLS ? cols : KERNELS_TILE_COLS;
    out->mask[0] = lanes_mask(rows);
    out->mask[1] = rows > 16 ? lanes_mask(rows - 16) : 0;
    out->first = first;
}

INLINE void tile_load(const struct tile_out *out, float (*acc)[16], size_t halves)
{
    for (size_t i = 0; i < 12 * halves; i++) {
        __m512 v = _mm512_setzero_ps();

        if (!out->first && i / 2 < out->cols)
            v = _mm512_maskz_loadu_ps(out->mask[i % 2], out->y + i / 2 * out->stride + i % 2 * 16);
        _mm512_store_ps(acc[i], v);
    }
}

INLINE void tile_store(const struct tile_out *out, float (*acc)[16])
{
    for (size_t i = 0; i < 2 * out->cols; i++)
        _mm512_mask_storeu_ps(out->y + i / 2 * out->stride + i % 2 * 16, out->mask[i % 2],
                              _mm512_load_ps(acc[i]));
}

/* -- formats ---------------------------------------------------------------------------------- */

/* One row of a panel, decoded: what transposition starts from. */
struct decoded256 {
    int8_t q[256];
    int8_t scale[16]; /* of 16, or of 32 in the first eight */
    uint8_t minima[16];
    float d;
    float m;
};

struct source256 {
    size_t bytes;
    size_t subs; /* 8 or 16 */
    bool minima;
    void (*decode)(const uint8_t *block, struct decoded256 *to);
};

/* Eight blocks of 32 of one row. */
struct decoded32 {
    int8_t q[256];
    float d[8];
    float m[8];
};

struct source32 {
    size_t bytes; /* of 1 << shift blocks */
    size_t shift;
    bool offset;
    bool
        two_scales; /* nvfp4: d of the first sixteen, m of the second; |q| ≤ 15, so that nc fits words */
    void (*decode)(const uint8_t *blocks, struct decoded32 *to);
};

void gemm256_avx512(const struct gemm *g, const struct source256 *f);
void gemm32_avx512(const struct gemm *g, const struct source32 *f);
