/*
 * product - weights × activations for one thread's rows of the weights, by
 * whichever kernel suits the number of columns; shared by matmul and moe.
 */
#pragma once

#include "backends/cpu/cpu.h"

/* Columns at which weights decoded once pay for packing. */
#define PRODUCT_MATVEC_COLS 4
#define PRODUCT_ROW_UNIT    16 /* rows that a matvec takes together */

struct product {
    const struct tensor *w;
    size_t w_offset; /* bytes to the first row: an expert's slice */
    const void *act; /* canonical rows, act_stride apart */
    size_t act_stride;
    const void *packed; /* tiles, when product_packs(); else unused */
    size_t cols;
    float *y;
    size_t y_stride; /* floats from column to column */
};

/* Does a product of that many columns by this format read tiles? */
bool product_packs(const struct kernels *k, enum format_id f, size_t cols);
size_t product_tiles(const struct kernels *k, enum format_id f, size_t cols);
size_t product_tile_bytes(const struct kernels *k, enum format_id f, size_t n);
/* Scratch that each thread needs for gemm on rows of n elements; 0 where matvec serves. */
size_t product_scratch_bytes(const struct kernels *k, enum format_id f, size_t n, size_t cols);

/* The rows that fall to a thread: a gemm likes pairs of units, a small matrix balance. */
static inline void product_share(const struct part *p, size_t rows, size_t *ret_from,
                                 size_t *ret_to)
{
    bool large = rows >= (size_t)4 * PRODUCT_ROW_UNIT * p->n_threads;

    team_share(rows, (large ? 2 : 1) * (size_t)PRODUCT_ROW_UNIT, p->thread, p->n_threads, ret_from,
               ret_to);
}

/* Computes rows [from, to) of the weights. */
void product_rows(const struct product *p, const struct kernels *k, size_t from, size_t to,
                  void *gemm_scratch);
