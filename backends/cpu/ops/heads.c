/*
 * HEADS: a matrix of its own for each head of a row.  With enough heads every
 * thread takes whole ones; else the rows of each head's matrix are shared out.
 */
#include "backends/cpu/ops/product.h"
#include "common/alloc.h"

enum { SRC_ACT, SRC_W };

static enum format_id format(const struct op *op)
{
    return format_id_of(op->src[SRC_W].fmt);
}

/* Bytes from head to head in a row of activations. */
static size_t head_bytes(const struct op *op)
{
    return act_row_bytes(op->p.heads.act, op->src[SRC_W].n[0]);
}

/* Tiles of one head; 0 where canonical rows are read. */
static size_t packed_bytes(const struct op *op, const struct kernels *k, size_t cols)
{
    if (!product_packs(k, format(op), cols))
        return 0;
    return scratch_round(product_tiles(k, format(op), cols) *
                         product_tile_bytes(k, format(op), op->src[SRC_W].n[0]));
}

static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    const struct tensor *w = &op->src[SRC_W];

    return n_threads * product_scratch_bytes(k, format(op), w->n[0], rows) +
           w->n[2] * packed_bytes(op, k, rows);
}

static void pack_share(const struct op *op, const struct part *p, char *packed)
{
    const struct tensor *act = &op->src[SRC_ACT];
    enum format_id f = format(op);
    size_t n = op->src[SRC_W].n[0], width = p->k->tile_cols[f];
    size_t tiles = product_tiles(p->k, f, p->rows), from, to;

    team_share(op->src[SRC_W].n[2] * tiles, 1, p->thread, p->n_threads, &from, &to);
    for (size_t i = from; i < to; i++) {
        size_t head = i / tiles, t = i % tiles;
        struct pack pack = {
            .act = (const char *)tensor_row(act, t * width) + head * head_bytes(op),
            .act_stride = act->stride[1],
            .n = n,
            .cols = MIN(width, p->rows - t * width),
            .out = packed + head * packed_bytes(op, p->k, p->rows) +
                   t * product_tile_bytes(p->k, f, n),
        };

        p->k->pack[f](&pack);
    }
}

static void multiply(const struct op *op, const struct part *p, const char *packed, size_t head,
                     size_t from, size_t to)
{
    const struct tensor *w = &op->src[SRC_W];
    char *gemm =
        (char *)p->scratch + p->thread * product_scratch_bytes(p->k, format(op), w->n[0], p->rows);
    struct product prod = {
        .w = w,
        .w_offset = head * w->stride[2],
        .act = (const char *)op->src[SRC_ACT].data + head * head_bytes(op),
        .act_stride = op->src[SRC_ACT].stride[1],
        .packed = packed + head * packed_bytes(op, p->k, p->rows),
        .cols = p->rows,
        .y = (float *)op->dst[0].data + head * w->n[1],
        .y_stride = op->dst[0].stride[1] / sizeof(float),
    };

    product_rows(&prod, p->k, from, to, gemm);
}

static void run(const struct op *op, const struct part *p)
{
    const struct tensor *w = &op->src[SRC_W];
    char *packed = (char *)p->scratch +
                   p->n_threads * product_scratch_bytes(p->k, format(op), w->n[0], p->rows);
    size_t from, to;

    if (packed_bytes(op, p->k, p->rows)) {
        pack_share(op, p, packed);
        team_barrier(p->team);
    }
    if (w->n[2] >= p->n_threads) {
        team_share(w->n[2], 1, p->thread, p->n_threads, &from, &to);
        for (size_t h = from; h < to; h++)
            multiply(op, p, packed, h, 0, w->n[1]);
        return;
    }
    product_share(p, w->n[1], &from, &to);
    for (size_t h = 0; h < w->n[2]; h++)
        multiply(op, p, packed, h, from, to);
}

static bool can(const struct op *op, const struct kernels *k)
{
    return k->matvec[format(op)];
}

const struct driver driver_HEADS = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
