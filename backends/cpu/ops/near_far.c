/*
 * NEAR_FAR: attention of many heads to one key, which is its own value: first
 * to the positions of a window, by chunks of absolute positions as ATTENTION
 * takes them, then to keys of groups, by chunks of the list of a row (or of all
 * groups that are complete), as SPARSE does.
 *
 * An item is a row and a part of its heads: with few rows the heads are shared
 * out among the threads.
 */
#include "backends/cpu/ops/attend.h"
#include "common/alloc.h"

enum { SRC_Q, SRC_NEAR, SRC_FAR, SRC_SINKS, SRC_LIST };

struct space {
    char *keys; /* one chunk */
    struct partial chunk, acc;
};

/* Heads [h, h + n_q) of a row. */
struct item {
    size_t r, h, n_q;
    bool any; /* a chunk has been merged */
};

static size_t thread_bytes(const struct op *op)
{
    const struct tensor *far = &op->src[SRC_FAR];

    return scratch_round(KERNELS_CHUNK * format_row_bytes(far->fmt, far->n[0])) +
           2 * partial_bytes(op, op->p.attention.n_heads);
}

static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    (void)k;
    (void)rows;
    return n_threads * thread_bytes(op);
}

static struct space space_of(const struct op *op, const struct part *p)
{
    const struct tensor *far = &op->src[SRC_FAR];
    char *base = (char *)p->scratch + p->thread * thread_bytes(op);
    size_t at = 0, n_q = op->p.attention.n_heads;
    struct space s;

    s.keys = scratch_take(base, &at, KERNELS_CHUNK * format_row_bytes(far->fmt, far->n[0]));
    s.chunk = partial_at(scratch_take(base, &at, partial_bytes(op, n_q)), n_q);
    s.acc = partial_at(scratch_take(base, &at, partial_bytes(op, n_q)), n_q);
    return s;
}

/* Keys [from, to) from k on. */
static void attend(const struct op *op, const struct part *p, const struct space *s,
                   struct item *it, const char *k, size_t stride, size_t from, size_t to)
{
    size_t dim = op->p.attention.head_dim;
    struct attn a = {
        .q = tensor_f32(&op->src[SRC_Q], it->r) + it->h * dim,
        .n_q = it->n_q,
        .q_stride = dim,
        .k = k,
        .v = k,
        .k_stride = stride,
        .v_stride = stride,
        .from = from,
        .to = to,
        .head_dim = dim,
        .v_dim = dim,
        .scale = op->p.attention.scale,
        .soft_cap = op->p.attention.soft_cap,
        .m = s->chunk.m,
        .l = s->chunk.l,
        .o = s->chunk.o,
    };

    p->k->attn[format_id_of(op->src[SRC_NEAR].fmt)](&a);
    for (size_t i = 0; i < it->n_q; i++)
        partial_merge(op, p, &s->acc, i, &s->chunk, i, !it->any);
    it->any = true;
}

static void attend_near(const struct op *op, const struct part *p, const struct space *s,
                        struct item *it)
{
    const struct tensor *k = &op->src[SRC_NEAR];
    size_t to = p->run->pos + it->r + 1, window = op->p.attention.window;
    size_t from = to > window ? to - window : 0;

    for (size_t c = from / KERNELS_CHUNK; c * KERNELS_CHUNK < to; c++) {
        size_t start = c * KERNELS_CHUNK;

        attend(op, p, s, it, (const char *)k->data + c % k->n[3] * k->stride[3], k->stride[1],
               from > start ? from - start : 0, MIN(to - start, (size_t)KERNELS_CHUNK));
    }
}

static void attend_far(const struct op *op, const struct part *p, const struct space *s,
                       struct item *it)
{
    const struct tensor *k = &op->src[SRC_FAR], *list = &op->src[SRC_LIST];
    size_t n = (p->run->pos + it->r + 1) / op->p.attention.group;

    if (list->fmt)
        n = MIN(n, list->n[0]);
    for (size_t c = 0; c * KERNELS_CHUNK < n; c++) {
        size_t len = MIN(n - c * KERNELS_CHUNK, (size_t)KERNELS_CHUNK), stride = k->stride[1];
        const char *keys = (const char *)k->data + c * k->stride[3];

        if (list->fmt)
            keys = keys_gather(k, 0, (const int32_t *)tensor_row(list, it->r) + c * KERNELS_CHUNK,
                               len, s->keys, &stride);
        attend(op, p, s, it, keys, stride, 0, len);
    }
}

static void run(const struct op *op, const struct part *p)
{
    size_t heads = op->p.attention.n_heads;
    size_t parts = p->rows < p->n_threads ? MIN(heads, (size_t)p->n_threads) : 1;
    struct space s = space_of(op, p);

    for (size_t i = p->thread; i < p->rows * parts; i += p->n_threads) {
        struct item it = {.r = i / parts};
        size_t to;

        team_share(heads, 1, (unsigned)(i % parts), (unsigned)parts, &it.h, &to);
        it.n_q = to - it.h;
        if (!it.n_q)
            continue;
        attend_near(op, p, &s, &it);
        attend_far(op, p, &s, &it);
        for (size_t h = 0; h < it.n_q; h++)
            partial_finish(op, p, &s.acc, h, it.r, it.h + h, &op->src[SRC_SINKS]);
    }
}

static bool can(const struct op *op, const struct kernels *k)
{
    return op->p.attention.head_dim <= KERNELS_HEAD_MAX &&
           op->src[SRC_NEAR].fmt == op->src[SRC_FAR].fmt &&
           k->attn[format_id_of(op->src[SRC_NEAR].fmt)];
}

const struct driver driver_NEAR_FAR = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
