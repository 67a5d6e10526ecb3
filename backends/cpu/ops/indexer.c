/*
 * INDEXER: which positions a row attends to (DeepSeek-V3.2, "lightning indexer").
 *
 * A row scores every key that it sees: keys of a chunk are rows of a matrix that
 * meets the queries of all heads, and the products, without those below zero,
 * are added by head in ascending order.  The best are found by the digits of
 * their bits, which is exact: the lowest positions among equals, in order.
 *
 * With fewer rows than threads the chunks of each row are shared out; a row's
 * scores then wait in scratch for the thread that chooses.
 */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "common/alloc.h"

enum { SRC_Q, SRC_W, SRC_K };

#define COLS 4 /* that a matvec takes */

struct space {
    char *act;     /* queries of a row, as the keys' format wants them */
    float *dots;   /* [n_heads][KERNELS_CHUNK] */
    float *scores; /* of this thread: [positions of the cache] */
};

static enum act_kind act_of(const struct op *op)
{
    return op->src[SRC_K].fmt->act;
}

static size_t head_bytes(const struct op *op)
{
    return act_row_bytes(act_of(op), op->p.indexer.head_dim);
}

static size_t scores_bytes(const struct op *op)
{
    return scratch_round(op->src[SRC_K].n[3] * KERNELS_CHUNK * sizeof(float));
}

static size_t thread_bytes(const struct op *op)
{
    return scratch_round(op->p.indexer.n_heads * head_bytes(op)) +
           scratch_round(op->p.indexer.n_heads * KERNELS_CHUNK * sizeof(float));
}

static size_t scratch_bytes(const struct op *op, const struct kernels *k, unsigned n_threads,
                            size_t rows)
{
    (void)k;
    (void)rows;
    return n_threads * (thread_bytes(op) + scores_bytes(op));
}

static struct space space_of(const struct op *op, const struct part *p)
{
    char *base = (char *)p->scratch + p->thread * thread_bytes(op);
    size_t at = 0;
    struct space s;

    s.act = scratch_take(base, &at, op->p.indexer.n_heads * head_bytes(op));
    s.dots = scratch_take(base, &at, op->p.indexer.n_heads * KERNELS_CHUNK * sizeof(float));
    s.scores = NULL;
    return s;
}

/* Scores number i, of a thread or of a row: there are as many as threads. */
static float *scores_at(const struct op *op, const struct part *p, size_t i)
{
    char *base = (char *)p->scratch + p->n_threads * thread_bytes(op);

    return (float *)(base + i * scores_bytes(op));
}

static void load_queries(const struct op *op, const struct part *p, const struct space *s, size_t r)
{
    size_t dim = op->p.indexer.head_dim;

    for (size_t h = 0; h < op->p.indexer.n_heads; h++) {
        const float *q = tensor_f32(&op->src[SRC_Q], r) + h * dim;

        if (act_of(op) == ACT_F32)
            memcpy(s->act + h * head_bytes(op), q, dim * sizeof(float));
        else
            p->k->quantize[act_of(op)](q, dim, s->act + h * head_bytes(op));
    }
}

static void score_chunk(const struct op *op, const struct part *p, const struct space *s, size_t r,
                        size_t c, float *out)
{
    const struct tensor *k = &op->src[SRC_K];
    const float *weights = tensor_f32(&op->src[SRC_W], r);
    size_t n_heads = op->p.indexer.n_heads;
    size_t n = MIN(p->run->pos + r + 1 - c * KERNELS_CHUNK, (size_t)KERNELS_CHUNK);

    for (size_t h = 0; h < n_heads; h += COLS) {
        struct matvec m = {
            .w = (const char *)k->data + c * k->stride[3],
            .row_bytes = k->stride[1],
            .rows = n,
            .n = op->p.indexer.head_dim,
            .act = s->act + h * head_bytes(op),
            .act_stride = head_bytes(op),
            .cols = MIN((size_t)COLS, n_heads - h),
            .y = s->dots + h * KERNELS_CHUNK,
            .y_stride = KERNELS_CHUNK,
        };

        p->k->matvec[format_id_of(k->fmt)](&m);
    }
    memset(out, 0, n * sizeof(float));
    for (size_t h = 0; h < n_heads; h++) {
        const float *dots = s->dots + h * KERNELS_CHUNK;
        float w = weights[h] * op->p.indexer.scale;

        for (size_t i = 0; i < n; i++)
            out[i] += w * (dots[i] > 0.0f ? dots[i] : 0.0f);
    }
}

/* Unsigned numbers in the order of the floats; NaN beyond all. */
static uint32_t order_of(float x)
{
    uint32_t bits;

    memcpy(&bits, &x, sizeof(bits));
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

/* The k-th largest of n scores, digit by digit; *ret_equal of those like it are among the k. */
static uint32_t threshold(const float *scores, size_t n, size_t k, size_t *ret_equal)
{
    uint32_t prefix = 0, mask = 0;

    for (int shift = 24; shift >= 0; shift -= 8) {
        size_t count[256] = {0};
        uint32_t digit = 255;

        for (size_t i = 0; i < n; i++) {
            uint32_t x = order_of(scores[i]);

            if ((x & mask) == prefix)
                count[x >> shift & 255]++;
        }
        for (; k > count[digit] && digit > 0; digit--)
            k -= count[digit];
        prefix |= digit << shift;
        mask |= 255u << shift;
    }
    *ret_equal = k;
    return prefix;
}

static void choose(const struct op *op, const struct part *p, size_t r, const float *scores)
{
    size_t n = p->run->pos + r + 1, top_k = op->dst[0].n[0], equal, k = 0;
    int32_t *list = tensor_row(&op->dst[0], r);
    uint32_t least;

    if (n <= top_k) { /* what is behind a short list is zero, so that a row is all the same */
        for (size_t i = 0; i < top_k; i++)
            list[i] = i < n ? (int32_t)i : 0;
        return;
    }
    least = threshold(scores, n, top_k, &equal);
    for (size_t i = 0; i < n; i++) {
        uint32_t x = order_of(scores[i]);

        if (x < least || (x == least && !equal))
            continue;
        equal -= x == least;
        list[k++] = (int32_t)i;
    }
}

static bool must_choose(const struct op *op, const struct part *p, size_t r)
{
    return p->run->pos + r + 1 > op->dst[0].n[0];
}

/* Every thread scores its chunks of all rows; then rows are shared out. */
static void run_split(const struct op *op, const struct part *p, const struct space *s)
{
    for (size_t r = 0; r < p->rows; r++) {
        if (!must_choose(op, p, r))
            continue;
        load_queries(op, p, s, r);
        for (size_t c = p->thread; c * KERNELS_CHUNK <= p->run->pos + r; c += p->n_threads)
            score_chunk(op, p, s, r, c, scores_at(op, p, r) + c * KERNELS_CHUNK);
    }
    team_barrier(p->team);
    if (p->thread < p->rows)
        choose(op, p, p->thread, scores_at(op, p, p->thread));
}

static void run(const struct op *op, const struct part *p)
{
    struct space s = space_of(op, p);

    if (p->rows < p->n_threads) {
        run_split(op, p, &s);
        return;
    }
    s.scores = scores_at(op, p, p->thread);
    for (size_t r = p->thread; r < p->rows; r += p->n_threads) {
        if (must_choose(op, p, r)) {
            load_queries(op, p, &s, r);
            for (size_t c = 0; c * KERNELS_CHUNK <= p->run->pos + r; c++)
                score_chunk(op, p, &s, r, c, s.scores + c * KERNELS_CHUNK);
        }
        choose(op, p, r, s.scores);
    }
}

static bool can(const struct op *op, const struct kernels *k)
{
    return k->matvec[format_id_of(op->src[SRC_K].fmt)];
}

const struct driver driver_INDEXER = {.run = run, .scratch_bytes = scratch_bytes, .can = can};
