/* Merging of attention by chunks; see attend.h. */
#include "backends/cpu/ops/attend.h"

#include <string.h>

static const char *key_at(const struct tensor *t, size_t head, size_t pos)
{
    return (const char *)t->data + pos / KERNELS_CHUNK * t->stride[3] + head * t->stride[2] +
           pos % KERNELS_CHUNK * t->stride[1];
}

const char *keys_gather(const struct tensor *cache, size_t head, const int32_t *list, size_t n,
                        char *to, size_t *ret_stride)
{
    size_t bytes = format_row_bytes(cache->fmt, cache->n[0]);
    size_t first = (size_t)list[0], last = (size_t)list[n - 1];

    if (last - first == n - 1 && first / KERNELS_CHUNK == last / KERNELS_CHUNK) {
        *ret_stride = cache->stride[1];
        return key_at(cache, head, first);
    }
    *ret_stride = bytes;
    for (size_t i = 0; i < n; i++)
        memcpy(to + i * bytes, key_at(cache, head, (size_t)list[i]), bytes);
    return to;
}

size_t partial_bytes(const struct op *op, size_t n_q)
{
    return scratch_round(n_q * (op->p.attention.v_dim + 2) * sizeof(float));
}

struct partial partial_at(char *at, size_t n_q)
{
    struct partial p = {.m = (float *)at};

    p.l = p.m + n_q;
    p.o = p.l + n_q;
    return p;
}

void partial_merge(const struct op *op, const struct part *p, const struct partial *acc, size_t i,
                   const struct partial *chunk, size_t j, bool is_first)
{
    size_t v_dim = op->p.attention.v_dim;

    if (is_first) {
        acc->m[i] = chunk->m[j];
        acc->l[i] = chunk->l[j];
        memcpy(acc->o + i * v_dim, chunk->o + j * v_dim, v_dim * sizeof(float));
        return;
    }
    p->k->attn_merge(&acc->m[i], &acc->l[i], acc->o + i * v_dim, chunk->m[j], chunk->l[j],
                     chunk->o + j * v_dim, v_dim);
}

/* A sink is one more key with a logit of its own and a value of zero. */
void partial_finish(const struct op *op, const struct part *p, const struct partial *acc, size_t i,
                    size_t r, size_t head, const struct tensor *sinks)
{
    static const float zero[KERNELS_HEAD_MAX];
    size_t v_dim = op->p.attention.v_dim;
    float *o = acc->o + i * v_dim;

    if (sinks->fmt)
        p->k->attn_merge(&acc->m[i], &acc->l[i], o, ((const float *)sinks->data)[head], 1.0f, zero,
                         v_dim);
    p->k->scale(o, 1.0f / acc->l[i], tensor_f32(&op->dst[0], r) + head * v_dim, v_dim);
}
