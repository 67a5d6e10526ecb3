/* The choice between matvec and gemm; see product.h. */
#include "backends/cpu/ops/product.h"

#include "common/alloc.h"

/* Rows of weights that stay in L2 while column groups pass over them. */
#define BLOCK_BYTES ((size_t)128 << 10)

bool product_packs(const struct kernels *k, enum format_id f, size_t cols)
{
    return cols > PRODUCT_MATVEC_COLS && k->gemm[f] && k->pack[f];
}

size_t product_tiles(const struct kernels *k, enum format_id f, size_t cols)
{
    return (cols + k->tile_cols[f] - 1) / k->tile_cols[f];
}

size_t product_tile_bytes(const struct kernels *k, enum format_id f, size_t n)
{
    return k->pack_bytes[f](n);
}

size_t product_scratch_bytes(const struct kernels *k, enum format_id f, size_t n, size_t cols)
{
    return cols > PRODUCT_MATVEC_COLS && k->gemm[f] ? scratch_round(KERNELS_SCRATCH_BYTES(n)) : 0;
}

static void by_matvec(const struct product *p, matvec_fn *matvec, size_t from, size_t to)
{
    size_t row_bytes = p->w->stride[1];
    size_t step = BLOCK_BYTES / row_bytes / PRODUCT_ROW_UNIT * PRODUCT_ROW_UNIT;

    /* One column group reads everything once: then a single linear walk is best. */
    if (p->cols <= PRODUCT_MATVEC_COLS)
        step = to - from;
    if (step < PRODUCT_ROW_UNIT)
        step = PRODUCT_ROW_UNIT;
    for (size_t r = from; r < to; r += step)
        for (size_t c = 0; c < p->cols; c += PRODUCT_MATVEC_COLS) {
            struct matvec m = {
                .w = (const char *)p->w->data + p->w_offset + r * row_bytes,
                .row_bytes = row_bytes,
                .rows = MIN(step, to - r),
                .n = p->w->n[0],
                .act = (const char *)p->act + c * p->act_stride,
                .act_stride = p->act_stride,
                .cols = MIN((size_t)PRODUCT_MATVEC_COLS, p->cols - c),
                .y = p->y + c * p->y_stride + r,
                .y_stride = p->y_stride,
            };

            matvec(&m);
        }
}

void product_rows(const struct product *p, const struct kernels *k, size_t from, size_t to,
                  void *gemm_scratch)
{
    enum format_id f = format_id_of(p->w->fmt);
    struct gemm g;

    if (from >= to || !p->cols)
        return;
    if (p->cols <= PRODUCT_MATVEC_COLS || !k->gemm[f]) {
        by_matvec(p, k->matvec[f], from, to);
        return;
    }
    g = (struct gemm){
        .w = (const char *)p->w->data + p->w_offset + from * p->w->stride[1],
        .row_bytes = p->w->stride[1],
        .rows = to - from,
        .n = p->w->n[0],
        .act = p->act,
        .act_stride = p->act_stride,
        .packed = p->packed,
        .cols = p->cols,
        .y = p->y + from,
        .y_stride = p->y_stride,
        .scratch = gemm_scratch,
    };
    k->gemm[f](&g);
}
