/*
 * SPARSE: attention of each row over a list of positions of its own.  The keys
 * of the list are brought together in chunks, in ascending order, and chunks are
 * merged as ATTENTION merges them; a list of all positions gives its bits.
 *
 * An item is a row and a kv head.  With fewer items than threads each is split
 * by chunk, and the partial results wait in scratch to be merged by query.
 */
#include <string.h>

#include "backends/cpu/ops/attend.h"
#include "common/alloc.h"

enum { SRC_Q, SRC_K, SRC_V, SRC_SINKS, SRC_LIST };

struct space {
    char *k, *v; /* one chunk of keys and of values */
    struct partial chunk, acc;
};

static size_t group_of(const struct op *op)
{
    return op->p.attention.n_heads / op->p.attention.n_kv_heads;
}

static bool v_in_k(const struct op *op)
{
    return op->src[SRC_V].data == op->src[SRC_K].data;
}

static size_t row_bytes(const struct op *op, int src)
{
    return format_row_bytes(op->src[src].fmt, op->src[src].n[0]);
}

static size_t most_chunks(const struct op *op)
{
    return (op->src[SRC_LIST].n[0] + KERNELS_CHUNK - 1) / KERNELS_CHUNK;
}

static size_t thread_bytes(const struct op *op)
{
    return scratch_round(KERNELS_CHUNK * row_bytes(op, SRC_K)) +
           scratch_round(KERNELS_CHUNK * row_bytes(op, SRC_V)) +
           2 * partial_bytes(op, group_of(op));
}

static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    size_t items = MIN(rows * op->p.attention.n_kv_heads, (size_t)n_threads);

    (void)k;
    return n_threads * thread_bytes(op) + items * most_chunks(op) * partial_bytes(op, group_of(op));
}

static struct space space_of(const struct op *op, const struct part *p)
{
    char *base = (char *)p->scratch + p->thread * thread_bytes(op);
    size_t at = 0, n_q = group_of(op);
    struct space s;

    s.k = scratch_take(base, &at, KERNELS_CHUNK * row_bytes(op, SRC_K));
    s.v = scratch_take(base, &at, KERNELS_CHUNK * row_bytes(op, SRC_V));
    s.chunk = partial_at(scratch_take(base, &at, partial_bytes(op, n_q)), n_q);
    s.acc = partial_at(scratch_take(base, &at, partial_bytes(op, n_q)), n_q);
    return s;
}

static size_t list_length(const struct op *op, const struct part *p, size_t r)
{
    return MIN(p->run->pos + r + 1, op->src[SRC_LIST].n[0]);
}

static void attend_chunk(const struct op *op, const struct part *p, const struct space *s,
                         size_t head, size_t r, size_t c, const struct partial *out)
{
    const int32_t *list = (const int32_t *)tensor_row(&op->src[SRC_LIST], r) + c * KERNELS_CHUNK;
    size_t n = MIN(list_length(op, p, r) - c * KERNELS_CHUNK, (size_t)KERNELS_CHUNK);
    size_t group = group_of(op), dim = op->p.attention.head_dim;
    struct attn a = {
        .q = tensor_f32(&op->src[SRC_Q], r) + head * group * dim,
        .n_q = group,
        .q_stride = dim,
        .to = n,
        .head_dim = dim,
        .v_dim = op->p.attention.v_dim,
        .scale = op->p.attention.scale,
        .soft_cap = op->p.attention.soft_cap,
        .m = out->m,
        .l = out->l,
        .o = out->o,
    };

    a.k = keys_gather(&op->src[SRC_K], head, list, n, s->k, &a.k_stride);
    a.v = a.k;
    a.v_stride = a.k_stride;
    if (!v_in_k(op))
        a.v = keys_gather(&op->src[SRC_V], head, list, n, s->v, &a.v_stride);
    p->k->attn[format_id_of(op->src[SRC_K].fmt)](&a);
}

static void run_item(const struct op *op, const struct part *p, const struct space *s, size_t head,
                     size_t r)
{
    size_t n = list_length(op, p, r), group = group_of(op);

    for (size_t c = 0; c * KERNELS_CHUNK < n; c++) {
        attend_chunk(op, p, s, head, r, c, &s->chunk);
        for (size_t i = 0; i < group; i++)
            partial_merge(op, p, &s->acc, i, &s->chunk, i, c == 0);
    }
    for (size_t i = 0; i < group; i++)
        partial_finish(op, p, &s->acc, i, r, head * group + i, &op->src[SRC_SINKS]);
}

static struct partial shared_at(const struct op *op, const struct part *p, size_t item,
                                size_t chunk)
{
    size_t n_q = group_of(op);
    char *at = (char *)p->scratch + p->n_threads * thread_bytes(op);

    return partial_at(at + (item * most_chunks(op) + chunk) * partial_bytes(op, n_q), n_q);
}

static void run_split(const struct op *op, const struct part *p, const struct space *s)
{
    size_t n_kv = op->p.attention.n_kv_heads, group = group_of(op);
    size_t items = p->rows * n_kv, chunks = most_chunks(op);

    for (size_t i = p->thread; i < items * chunks; i += p->n_threads) {
        size_t item = i / chunks, c = i % chunks;
        struct partial out = shared_at(op, p, item, c);

        if (c * KERNELS_CHUNK < list_length(op, p, item / n_kv))
            attend_chunk(op, p, s, item % n_kv, item / n_kv, c, &out);
    }
    team_barrier(p->team);
    for (size_t i = p->thread; i < items * group; i += p->n_threads) {
        size_t item = i / group, r = item / n_kv;

        for (size_t c = 0; c * KERNELS_CHUNK < list_length(op, p, r); c++) {
            struct partial chunk = shared_at(op, p, item, c);

            partial_merge(op, p, &s->acc, 0, &chunk, i % group, c == 0);
        }
        partial_finish(op, p, &s->acc, 0, r, item % n_kv * group + i % group, &op->src[SRC_SINKS]);
    }
}

static void run(const struct op *op, const struct part *p)
{
    size_t n_kv = op->p.attention.n_kv_heads;
    struct space s = space_of(op, p);

    if (p->rows * n_kv < p->n_threads) {
        run_split(op, p, &s);
        return;
    }
    for (size_t i = p->thread; i < p->rows * n_kv; i += p->n_threads)
        run_item(op, p, &s, i % n_kv, i / n_kv);
}

static bool can(const struct op *op, const struct kernels *k)
{
    return op->p.attention.head_dim <= KERNELS_HEAD_MAX &&
           op->p.attention.v_dim <= KERNELS_HEAD_MAX && op->src[SRC_K].fmt == op->src[SRC_V].fmt &&
           k->attn[format_id_of(op->src[SRC_K].fmt)];
}

const struct driver driver_SPARSE = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
