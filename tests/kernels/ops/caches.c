/* KV caches of beds; see caches.h. */
#include "tests/kernels/ops/caches.h"

#include <string.h>

#define MAX_DIM 1024

struct tensor bed_cache(struct bed *b, const struct format *f, size_t dim, size_t heads,
                        size_t chunks)
{
    struct tensor t = bed_tensor(b, f, dim, OP_KV_CHUNK, heads, chunks);

    memset(t.data, 0xff, tensor_bytes(&t));
    return t;
}

void *bed_slot(const struct tensor *t, size_t head, size_t pos)
{
    return (char *)t->data + pos / OP_KV_CHUNK % t->n[3] * t->stride[3] + head * t->stride[2] +
           pos % OP_KV_CHUNK * t->stride[1];
}

void bed_fill_cache(const struct tensor *t, size_t end)
{
    size_t held = t->n[3] * OP_KV_CHUNK;
    float row[MAX_DIM];

    for (size_t p = end > held ? end - held : 0; p < end; p++)
        for (size_t h = 0; h < t->n[2]; h++) {
            for (size_t d = 0; d < t->n[0]; d++)
                row[d] = bed_normal();
            t->fmt->from_f32(row, bed_slot(t, h, p), t->n[0]);
        }
}
