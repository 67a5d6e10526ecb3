/*
 * slabs_avx512 - the order of work of the products through panels, for blocks of
 * 32 and of 256: the panels of a group are built for one slab of their rows, and
 * every tile meets them all while it is in L1.
 *
 * Arguments, not fields: a constant argument is inlined.
 */
#pragma once

#include "backends/cpu/avx512/panel_avx512.h"

/* Panels of some blocks of 32 rows from `row` on. */
typedef void slab_build_fn(const struct gemm *g, const void *format, size_t row, size_t from,
                           size_t blocks, void *panels);
typedef void slab_product_fn(const void *panels, const void *tile, size_t blocks,
                             const struct tile_out *out);

struct slab_sizes {
    size_t elems; /* of a block, as are the others */
    size_t panel_bytes;
    size_t tile_bytes;
};

/* All tiles against the panels of one slab of up to PANEL_GROUP * 32 rows. */
INLINE void slab_product(const struct gemm *g, struct slab_sizes z, size_t row, size_t from,
                         size_t blocks, slab_product_fn *product)
{
    size_t tile_blocks = g->n / z.elems;

    for (size_t c = 0; c < g->cols; c += KERNELS_TILE_COLS) {
        const char *tile =
            (const char *)g->packed + (c / KERNELS_TILE_COLS * tile_blocks + from) * z.tile_bytes;
        const char *panels = g->scratch;

        for (size_t i = 0; i < PANEL_GROUP && row + i * PANEL_ROWS < g->rows; i++) {
            struct tile_out out;

            tile_out_init(&out, g, row + i * PANEL_ROWS, c, from == 0);
            product(panels + i * blocks * z.panel_bytes, tile, blocks, &out);
        }
    }
}

INLINE void gemm_slabs(const struct gemm *g, const void *format, struct slab_sizes z,
                       slab_build_fn *build, slab_product_fn *product)
{
    size_t blocks = g->n / z.elems, most = PANEL_SLAB / z.elems;
    char *panels = g->scratch;

    for (size_t row = 0; row < g->rows; row += PANEL_GROUP * PANEL_ROWS)
        for (size_t from = 0; from < blocks; from += most) {
            size_t n = blocks - from < most ? blocks - from : most;

            for (size_t i = 0; i < PANEL_GROUP && row + i * PANEL_ROWS < g->rows; i++)
                build(g, format, row + i * PANEL_ROWS, from, n, panels + i * n * z.panel_bytes);
            slab_product(g, z, row, from, n, product);
        }
}
