/* KV_STORE: encodes the new keys and values into the caches, head by head. */
#include "backends/cpu/ops/kv_store.h"

void kv_store_row(const struct kernels *k, const float *row, const struct tensor *cache, size_t pos)
{
    encode_fn *encode = k->encode[format_id_of(cache->fmt)];
    size_t dim = cache->n[0];
    size_t chunk = pos / KERNELS_CHUNK % cache->n[3];
    char *at =
        (char *)cache->data + chunk * cache->stride[3] + pos % KERNELS_CHUNK * cache->stride[1];

    if (!encode)
        encode = cache->fmt->from_f32;
    for (size_t h = 0; h < cache->n[2]; h++)
        encode(row + h * dim, at + h * cache->stride[2], dim);
}

static void run(const struct op *op, const struct part *p)
{
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        kv_store_row(p->k, tensor_f32(&op->src[0], r), &op->src[2], p->run->pos + r);
        if (op->src[1].fmt)
            kv_store_row(p->k, tensor_f32(&op->src[1], r), &op->src[3], p->run->pos + r);
    }
}

const struct driver driver_KV_STORE = {.run = run, .by_row = true};
