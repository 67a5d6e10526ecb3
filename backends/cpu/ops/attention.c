/*
 * ATTENTION: chunks of keys by absolute position, merged in order.
 *
 * An item is a kv head and a block of rows: all their queries meet each chunk
 * together.  Items go round the threads.  A few rows with too few heads to
 * share out evenly are split by chunk as well; the partial results then wait in
 * scratch and are merged by query, in the same order and so to the same bits.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/ops/attend.h"
#include "common/alloc.h"

#define BLOCK_QUERIES 64 /* that share a decoded key */
#define SPLIT_ROWS    4  /* at most, for the split by chunk */

enum { SRC_Q, SRC_K, SRC_V, SRC_SINKS };

/* Shapes of one op at one number of rows. */
struct shape {
    size_t rows;
    size_t group;      /* query heads of a kv head */
    size_t block_rows; /* rows of an item */
    size_t n_blocks;
    size_t n_q;      /* queries of an item, at most */
    size_t n_chunks; /* of the caches */
    bool split;
};

/* One thread's own memory. */
struct space {
    float *q; /* [n_q][head_dim] */
    struct attn_span *spans;
    struct partial chunk, acc;
};

static struct shape shape_of(const struct op *op, size_t rows, unsigned n_threads)
{
    size_t n_kv = op->p.attention.n_kv_heads;
    struct shape s = {.rows = rows, .group = op->p.attention.n_heads / n_kv};

    s.block_rows = MIN(rows, MAX((size_t)1, BLOCK_QUERIES / s.group));
    s.n_blocks = (rows + s.block_rows - 1) / s.block_rows;
    s.n_q = s.block_rows * s.group;
    s.n_chunks = op->src[SRC_K].n[3];
    s.split = rows <= SPLIT_ROWS && s.n_blocks == 1 && n_kv % n_threads != 0 &&
              n_kv < 4 * (size_t)n_threads;
    return s;
}

static size_t thread_bytes(const struct op *op, const struct shape *s)
{
    return scratch_round(s->n_q * op->p.attention.head_dim * sizeof(float)) +
           scratch_round(s->n_q * sizeof(struct attn_span)) + 2 * partial_bytes(op, s->n_q);
}

static struct space space_of(const struct op *op, const struct shape *s, const struct part *p)
{
    char *base = (char *)p->scratch + p->thread * thread_bytes(op, s);
    size_t at = 0;
    struct space sp;

    sp.q = scratch_take(base, &at, s->n_q * op->p.attention.head_dim * sizeof(float));
    sp.spans = scratch_take(base, &at, s->n_q * sizeof(struct attn_span));
    sp.chunk = partial_at(scratch_take(base, &at, partial_bytes(op, s->n_q)), s->n_q);
    sp.acc = partial_at(scratch_take(base, &at, partial_bytes(op, s->n_q)), s->n_q);
    return sp;
}

/* Fewer rows may be split where more are not, so both ways are counted. */
static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    struct shape s = shape_of(op, rows, n_threads);
    struct shape few = shape_of(op, MIN(rows, (size_t)SPLIT_ROWS), n_threads);
    size_t bytes = n_threads * thread_bytes(op, &s);

    (void)k;
    for (size_t r = 1; r <= MIN(rows, (size_t)SPLIT_ROWS); r++) {
        few = shape_of(op, r, n_threads);
        if (few.split)
            bytes = MAX(bytes, n_threads * thread_bytes(op, &few) + op->p.attention.n_kv_heads *
                                                                        few.n_chunks *
                                                                        partial_bytes(op, few.n_q));
    }
    return bytes;
}

/* The keys that row r of the batch sees. */
static void visible(const struct op *op, const struct part *p, size_t r, size_t *ret_from,
                    size_t *ret_to)
{
    size_t window = op->p.attention.window;
    size_t at = p->run->pos + r, half = window / 2;

    if (!op->p.attention.non_causal) {
        *ret_to = at + 1;
        *ret_from = window && at + 1 > window ? at + 1 - window : 0;
        if (op->p.attention.chunked)
            *ret_from = at / window * window;
        return;
    }
    *ret_to = p->run->pos + p->rows;
    if (window)
        *ret_to = MIN(*ret_to, at + half + 1);
    *ret_from = window && at > half ? at - half : 0;
}

static void chunks_of(const struct op *op, const struct part *p, size_t r0, size_t r1,
                      size_t *ret_first, size_t *ret_end)
{
    size_t from, to, ignored;

    visible(op, p, r0, &from, &ignored);
    visible(op, p, r1 - 1, &ignored, &to);
    *ret_first = from / KERNELS_CHUNK;
    *ret_end = (to + KERNELS_CHUNK - 1) / KERNELS_CHUNK;
}

static void load_queries(const struct op *op, const struct shape *s, size_t head, size_t r0,
                         size_t r1, float *q)
{
    size_t n = s->group * op->p.attention.head_dim;

    for (size_t r = r0; r < r1; r++)
        memcpy(q + (r - r0) * n, tensor_f32(&op->src[SRC_Q], r) + head * n, n * sizeof(float));
}

/*
 * Attention of the rows [r0, r1) over one chunk.  Rows that see any of it are
 * consecutive, as both ends of what a row sees only grow: *ret_r0 … *ret_r1.
 */
static void attend_chunk(const struct op *op, const struct part *p, const struct shape *s,
                         const struct space *sp, size_t head, size_t r0, size_t r1, size_t c,
                         const struct partial *out, size_t *ret_r0, size_t *ret_r1)
{
    const struct tensor *k = &op->src[SRC_K], *v = &op->src[SRC_V];
    size_t start = c * KERNELS_CHUNK, slot = c % k->n[3], first = r1, end = r1;

    for (size_t r = r0; r < r1; r++) {
        size_t from, to;

        visible(op, p, r, &from, &to);
        if (to <= start || from >= start + KERNELS_CHUNK)
            continue;
        first = MIN(first, r);
        end = r + 1;
        for (size_t g = 0; g < s->group; g++)
            sp->spans[(r - first) * s->group + g] = (struct attn_span){
                .from = (uint32_t)(from > start ? from - start : 0),
                .to = (uint32_t)MIN(to - start, (size_t)KERNELS_CHUNK),
            };
    }
    *ret_r0 = first;
    *ret_r1 = end;
    if (first < end) {
        struct attn a = {
            .q = sp->q + (first - r0) * s->group * op->p.attention.head_dim,
            .n_q = (end - first) * s->group,
            .q_stride = op->p.attention.head_dim,
            .k = (const char *)k->data + slot * k->stride[3] + head * k->stride[2],
            .v = (const char *)v->data + slot * v->stride[3] + head * v->stride[2],
            .k_stride = k->stride[1],
            .v_stride = v->stride[1],
            .to = KERNELS_CHUNK,
            .spans = sp->spans,
            .head_dim = op->p.attention.head_dim,
            .v_dim = op->p.attention.v_dim,
            .scale = op->p.attention.scale,
            .soft_cap = op->p.attention.soft_cap,
            .m = out->m,
            .l = out->l,
            .o = out->o,
        };

        p->k->attn[format_id_of(k->fmt)](&a);
    }
}

static void run_item(const struct op *op, const struct part *p, const struct shape *s,
                     const struct space *sp, size_t head, size_t r0, size_t r1)
{
    size_t c, end, a, b;

    load_queries(op, s, head, r0, r1, sp->q);
    chunks_of(op, p, r0, r1, &c, &end);
    for (; c < end; c++) {
        attend_chunk(op, p, s, sp, head, r0, r1, c, &sp->chunk, &a, &b);
        for (size_t r = a; r < b; r++) {
            size_t from, to;

            visible(op, p, r, &from, &to);
            for (size_t g = 0; g < s->group; g++)
                partial_merge(op, p, &sp->acc, (r - r0) * s->group + g, &sp->chunk,
                              (r - a) * s->group + g, c == from / KERNELS_CHUNK);
        }
    }
    for (size_t i = 0; i < (r1 - r0) * s->group; i++)
        partial_finish(op, p, &sp->acc, i, r0 + i / s->group, head * s->group + i % s->group,
                       &op->src[SRC_SINKS]);
}

/* The partial result of a kv head and chunk in the shared scratch. */
static struct partial shared_at(const struct op *op, const struct shape *s, const struct part *p,
                                size_t head, size_t chunk)
{
    char *at = (char *)p->scratch + p->n_threads * thread_bytes(op, s);

    return partial_at(at + (head * s->n_chunks + chunk) * partial_bytes(op, s->n_q), s->n_q);
}

static void merge_query(const struct op *op, const struct part *p, const struct shape *s,
                        const struct space *sp, size_t head, size_t i)
{
    size_t r = i / s->group, first, end, from, to;

    chunks_of(op, p, 0, p->rows, &first, &end);
    visible(op, p, r, &from, &to);
    for (size_t c = from / KERNELS_CHUNK; c * KERNELS_CHUNK < to; c++) {
        struct partial chunk = shared_at(op, s, p, head, c - first);
        size_t r0 = 0;

        /* Rows of a partial start at the first that sees the chunk. */
        for (size_t f, t; visible(op, p, r0, &f, &t), t <= c * KERNELS_CHUNK;)
            r0++;
        partial_merge(op, p, &sp->acc, 0, &chunk, (r - r0) * s->group + i % s->group,
                      c == from / KERNELS_CHUNK);
    }
    partial_finish(op, p, &sp->acc, 0, r, head * s->group + i % s->group, &op->src[SRC_SINKS]);
}

static void run_split(const struct op *op, const struct part *p, const struct shape *s,
                      const struct space *sp)
{
    size_t n_kv = op->p.attention.n_kv_heads, n_q = p->rows * s->group;
    size_t first, end, a, b;

    chunks_of(op, p, 0, p->rows, &first, &end);
    for (size_t i = p->thread; i < n_kv * (end - first); i += p->n_threads) {
        size_t head = i / (end - first), c = i % (end - first);
        struct partial out = shared_at(op, s, p, head, c);

        load_queries(op, s, head, 0, p->rows, sp->q);
        attend_chunk(op, p, s, sp, head, 0, p->rows, first + c, &out, &a, &b);
    }
    team_barrier(p->team);
    for (size_t i = p->thread; i < n_kv * n_q; i += p->n_threads)
        merge_query(op, p, s, sp, i / n_q, i % n_q);
}

static void run(const struct op *op, const struct part *p)
{
    struct shape s = shape_of(op, p->rows, p->n_threads);
    struct space sp = space_of(op, &s, p);
    size_t n_kv = op->p.attention.n_kv_heads, first, end;

    chunks_of(op, p, 0, p->rows, &first, &end);
    if (s.split && end - first > 1) {
        run_split(op, p, &s, &sp);
        return;
    }
    for (size_t i = p->thread; i < n_kv * s.n_blocks; i += p->n_threads) {
        size_t r0 = i / n_kv * s.block_rows;

        run_item(op, p, &s, &sp, i % n_kv, r0, MIN(r0 + s.block_rows, p->rows));
    }
}

static bool can(const struct op *op, const struct kernels *k)
{
    return op->p.attention.head_dim <= KERNELS_HEAD_MAX &&
           op->p.attention.v_dim <= KERNELS_HEAD_MAX && op->src[SRC_K].fmt == op->src[SRC_V].fmt &&
           k->attn[format_id_of(op->src[SRC_K].fmt)];
}

const struct driver driver_ATTENTION = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
