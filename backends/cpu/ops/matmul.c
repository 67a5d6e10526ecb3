/*
 * MATMUL: up to three weights that share their activations, as one region.
 * Each weight's rows are cut in equal parts, one for each thread; with many
 * columns the activations are packed first, tile by tile, by all threads.
 */
#include "backends/cpu/ops/product.h"
#include "common/alloc.h"

#define MAX_WEIGHTS 3

static const struct tensor *weight(const struct op *op, unsigned i)
{
    return &op->src[1 + i];
}

/* The first weight that reads the same tiles as weight i. */
static unsigned pack_owner(const struct op *op, const struct kernels *k, unsigned i, size_t cols)
{
    enum format_id f = format_id_of(weight(op, i)->fmt);

    for (unsigned j = 0; j < i; j++) {
        enum format_id g = format_id_of(weight(op, j)->fmt);

        if (product_packs(k, g, cols) && k->pack[g] == k->pack[f] &&
            k->tile_cols[g] == k->tile_cols[f])
            return j;
    }
    return i;
}

static size_t packed_bytes(const struct op *op, const struct kernels *k, unsigned i, size_t cols)
{
    enum format_id f = format_id_of(weight(op, i)->fmt);

    if (!product_packs(k, f, cols) || pack_owner(op, k, i, cols) != i)
        return 0;
    return scratch_round(product_tiles(k, f, cols) * product_tile_bytes(k, f, weight(op, i)->n[0]));
}

static size_t gemm_bytes(const struct op *op, const struct kernels *k, size_t cols)
{
    size_t most = 0;

    for (unsigned i = 0; i < op->p.matmul.n_weights; i++)
        most = MAX(most, product_scratch_bytes(k, format_id_of(weight(op, i)->fmt),
                                               weight(op, i)->n[0], cols));
    return most;
}

static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    size_t bytes = gemm_bytes(op, k, rows) * n_threads;

    for (unsigned i = 0; i < op->p.matmul.n_weights; i++)
        bytes += packed_bytes(op, k, i, rows);
    return bytes;
}

static void pack_share(const struct op *op, const struct part *p, unsigned i, char *packed)
{
    const struct tensor *act = &op->src[0];
    enum format_id f = format_id_of(weight(op, i)->fmt);
    size_t n = weight(op, i)->n[0], width = p->k->tile_cols[f];
    size_t from, to;

    team_share(product_tiles(p->k, f, p->rows), 1, p->thread, p->n_threads, &from, &to);
    for (size_t t = from; t < to; t++) {
        struct pack pack = {
            .act = tensor_row(act, t * width),
            .act_stride = act->stride[1],
            .n = n,
            .cols = MIN(width, p->rows - t * width),
            .out = packed + t * product_tile_bytes(p->k, f, n),
        };

        p->k->pack[f](&pack);
    }
}

static void add_bias(const struct op *op, const struct part *p, unsigned i, size_t from, size_t to)
{
    const struct tensor *bias = &op->src[4 + i];

    if (!bias->fmt || from >= to)
        return;
    for (size_t c = 0; c < p->rows; c++) {
        float *y = tensor_f32(&op->dst[i], c) + from;

        p->k->add(y, (const float *)bias->data + from, y, to - from);
    }
}

static void run(const struct op *op, const struct part *p)
{
    unsigned n_weights = op->p.matmul.n_weights;
    size_t at = 0;
    char *packed[MAX_WEIGHTS] = {NULL};
    char *gemm_scratch;
    bool any = false;

    for (unsigned i = 0; i < n_weights; i++) {
        size_t bytes = packed_bytes(op, p->k, i, p->rows);

        packed[i] =
            bytes ? scratch_take(p->scratch, &at, bytes) : packed[pack_owner(op, p->k, i, p->rows)];
        if (bytes)
            pack_share(op, p, i, packed[i]);
        any |= bytes > 0;
    }
    gemm_scratch = (char *)p->scratch + at + p->thread * gemm_bytes(op, p->k, p->rows);
    if (any)
        team_barrier(p->team);

    for (unsigned i = 0; i < n_weights; i++) {
        struct product prod = {
            .w = weight(op, i),
            .act = op->src[0].data,
            .act_stride = op->src[0].stride[1],
            .packed = packed[i],
            .cols = p->rows,
            .y = op->dst[i].data,
            .y_stride = op->dst[i].stride[1] / sizeof(float),
        };
        size_t from, to;

        product_share(p, weight(op, i)->n[1], &from, &to);
        product_rows(&prod, p->k, from, to, gemm_scratch);
        add_bias(op, p, i, from, to);
    }
}

static bool can(const struct op *op, const struct kernels *k)
{
    for (unsigned i = 0; i < op->p.matmul.n_weights; i++)
        if (!k->matvec[format_id_of(weight(op, i)->fmt)])
            return false;
    return true;
}

const struct driver driver_MATMUL = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
