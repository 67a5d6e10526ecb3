/*
 * slabs_avx2 - the order of work of the products through panels, for blocks of
 * 32 and of 256: the panels of a group are built for one slab of their rows, and
 * every tile, built in turn, meets them all.
 *
 * Arguments, not fields: a constant argument is inlined.
 */
#pragma once

#include "backends/cpu/avx2/panel_avx2.h"

/* Panels of some blocks of sixteen rows from `row` on; the tile of some blocks of twelve columns. */
typedef void slab_build_fn(const struct gemm *g, const void *format, size_t row, size_t from,
                           size_t blocks, void *panels);
typedef void slab_tile_fn(const struct gemm *g, size_t col, size_t from, size_t blocks, void *tile);
typedef void slab_product_fn(const void *panels, const void *tile, size_t blocks,
                             const struct tile_out *out);

INLINE void gemm_slabs(const struct gemm *g, const void *format, size_t elems, size_t panel_bytes,
                       slab_build_fn *build, slab_tile_fn *build_tile, slab_product_fn *product)
{
    size_t blocks = g->n / elems, group = PANEL_GROUP * PANEL_ROWS, slab = PANEL_SLAB / elems;
    size_t most = blocks < slab ? blocks : slab; /* in a panel */
    char *panels = g->scratch;
    void *tile = panels + PANEL_GROUP * most * panel_bytes;

    for (size_t row = 0; row < g->rows; row += group)
        for (size_t from = 0; from < blocks; from += slab) {
            size_t n = blocks - from < slab ? blocks - from : slab;
            size_t end = row + group < g->rows ? row + group : g->rows;

            for (size_t r = row, i = 0; r < end; r += PANEL_ROWS, i++)
                build(g, format, r, from, n, panels + i * most * panel_bytes);
            for (size_t c = 0; c < g->cols; c += TILE_COLS) {
                build_tile(g, c, from, n, tile);
                for (size_t r = row, i = 0; r < end; r += PANEL_ROWS, i++) {
                    struct tile_out out;

                    tile_out_init(&out, g, r, c, from == 0);
                    product(panels + i * most * panel_bytes, tile, n, &out);
                }
            }
        }
}
