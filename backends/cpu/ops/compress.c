/*
 * COMPRESS: one key for a group of positions (DeepSeek-V4's compressed sparse
 * attention): each of its values is a mean over the group, weighed by a softmax
 * of scores of its own, then normed and rotated.  With overlap the group before
 * takes part by columns of its own.
 *
 * A group is made by the batch that completes it.  Rows before the batch come
 * from those kept; positions are taken in ascending order, so the bits do not
 * depend on how a text was cut into batches.  Threads share out groups.
 */
#include <math.h>
#include <string.h>

#include "backends/cpu/ops/elementwise.h"
#include "backends/cpu/ops/kv_store.h"
#include "backends/cpu/ops/rope_table.h"
#include "common/alloc.h"

enum { SRC_X, SRC_SCORE, SRC_PLACE, SRC_NORM, SRC_KEPT, SRC_CACHE };

static size_t width_of(const struct op *op)
{
    return (size_t)op->p.compress.dim * (op->p.compress.overlap ? 2 : 1);
}

static float *kept_row(const struct op *op, size_t pos)
{
    const struct tensor *kept = &op->src[SRC_KEPT];

    return tensor_f32(kept, pos % kept->n[1]) + op->p.compress.column;
}

/* Columns of src0 or src1 at a position. */
static const float *input(const struct op *op, const struct part *p, int src, size_t pos,
                          size_t column)
{
    if (pos >= p->run->pos)
        return tensor_f32(&op->src[src], pos - p->run->pos) + column;
    return kept_row(op, pos) + (src == SRC_SCORE ? width_of(op) : 0) + column;
}

/* A pass over what a group is made of: fn() sees values and scores of each position. */
struct pass {
    const struct kernels *k;
    size_t n;
    float most[KERNELS_HEAD_MAX], sum[KERNELS_HEAD_MAX], key[KERNELS_HEAD_MAX];
};

static void take_most(struct pass *s, const float *x, const float *score)
{
    (void)x;
    for (size_t i = 0; i < s->n; i++)
        s->most[i] = score[i] > s->most[i] ? score[i] : s->most[i];
}

static void take_mean(struct pass *s, const float *x, const float *score)
{
    float e[KERNELS_HEAD_MAX];

    for (size_t i = 0; i < s->n; i++)
        e[i] = score[i] - s->most[i];
    s->k->exp_mul(e, elementwise_ones, e, s->n);
    for (size_t i = 0; i < s->n; i++) {
        s->sum[i] += e[i];
        s->key[i] += e[i] * x[i];
    }
}

static void walk(const struct op *op, const struct part *p, size_t j, struct pass *s,
                 void (*fn)(struct pass *s, const float *x, const float *score))
{
    size_t group = op->p.compress.group, first = j * group;
    size_t from = op->p.compress.overlap && j ? first - group : first;
    float score[KERNELS_HEAD_MAX];

    for (size_t pos = from; pos < first + group; pos++) {
        size_t column = op->p.compress.overlap && pos >= first ? s->n : 0;

        p->k->add(input(op, p, SRC_SCORE, pos, column),
                  tensor_f32(&op->src[SRC_PLACE], pos % group) + column, score, s->n);
        fn(s, input(op, p, SRC_X, pos, column), score);
    }
}

static void store(const struct op *op, const struct part *p, size_t j, float *key)
{
    const struct op_compress_params *o = &op->p.compress;
    float cs[KERNELS_HEAD_MAX];

    rope_table_row(&o->rope, j * o->group, cs);
    (o->rope.type == OP_ROPE_NEOX ? p->k->rope_neox : p->k->rope)(key + o->dim - o->rope.n_dims, cs,
                                                                  o->rope.n_dims);
    kv_store_row(p->k, key, &op->src[SRC_CACHE], j);
}

static void make_key(const struct op *op, const struct part *p, size_t j)
{
    struct pass s = {.k = p->k, .n = op->p.compress.dim};

    for (size_t i = 0; i < s.n; i++)
        s.most[i] = -INFINITY;
    walk(op, p, j, &s, take_most);
    walk(op, p, j, &s, take_mean);
    for (size_t i = 0; i < s.n; i++)
        s.key[i] = s.key[i] / s.sum[i];
    p->k->rmsnorm(s.key, op->src[SRC_NORM].data, op->p.compress.eps, s.key, s.n);
    store(op, p, j, s.key);
}

/* The last rows of the batch, as many as are kept. */
static void keep(const struct op *op, const struct part *p)
{
    size_t most = op->src[SRC_KEPT].n[1], width = width_of(op);
    size_t first = p->rows > most ? p->rows - most : 0, from, to;

    team_share(p->rows - first, 1, p->thread, p->n_threads, &from, &to);
    for (size_t r = first + from; r < first + to; r++) {
        float *row = kept_row(op, p->run->pos + r);

        memcpy(row, tensor_f32(&op->src[SRC_X], r), width * sizeof(float));
        memcpy(row + width, tensor_f32(&op->src[SRC_SCORE], r), width * sizeof(float));
    }
}

static void run(const struct op *op, const struct part *p)
{
    size_t group = op->p.compress.group;

    for (size_t j = p->run->pos / group + p->thread; (j + 1) * group <= p->run->pos + p->rows;
         j += p->n_threads)
        make_key(op, p, j);
    team_barrier(p->team); /* all have read what is kept */
    keep(op, p);
}

static bool can(const struct op *op, const struct kernels *k)
{
    (void)k;
    return op->p.compress.dim <= KERNELS_HEAD_MAX && op->src[SRC_CACHE].fmt->from_f32;
}

const struct driver driver_COMPRESS = {.run = run, .can = can};
