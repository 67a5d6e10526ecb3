/*
 * INDEXER: which positions a row attends to (DeepSeek-V3.2, "lightning indexer").
 *
 * A row scores every key that it sees: keys of a chunk are rows of a matrix that
 * meets the queries of all heads, and the products, without those below zero,
 * are added by head in ascending order.  A heap holds the best of the positions
 * so far; a later one takes the place of its least if it scores more.  So which
 * of equals stay is fixed by the scores alone, and is what that usual way leaves.
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

/* Keys that a row sees. */
static size_t n_seen(const struct op *op, const struct part *p, size_t r)
{
    return (p->run->pos + r + 1) / MAX(op->p.indexer.group, 1U);
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
    size_t n = MIN(n_seen(op, p, r) - c * KERNELS_CHUNK, (size_t)KERNELS_CHUNK);

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

/*
 * Puts a position into a hole of the heap, whose root has the least score: the
 * hole sinks to a leaf along the lesser children, and rises from there to where
 * the position belongs (I. Wegener 1993, Bottom-up heapsort).
 */
static void settle(const float *scores, int32_t *heap, size_t n, size_t hole, int32_t pos)
{
    size_t top = hole, child;

    while ((child = 2 * hole + 2) <= n) {
        if (child == n || scores[heap[child]] > scores[heap[child - 1]])
            child--;
        heap[hole] = heap[child];
        hole = child;
    }
    while (hole > top && scores[heap[(hole - 1) / 2]] > scores[pos]) {
        heap[hole] = heap[(hole - 1) / 2];
        hole = (hole - 1) / 2;
    }
    heap[hole] = pos;
}

/* Positions in ascending order; the scores are spent. */
static void sort_list(float *scores, size_t n, int32_t *list, size_t k)
{
    memset(scores, 0, n * sizeof(float));
    for (size_t i = 0; i < k; i++)
        scores[list[i]] = 1.0f;
    for (size_t i = 0; i < n; i++)
        if (scores[i] != 0.0f)
            *list++ = (int32_t)i;
}

static void choose(const struct op *op, const struct part *p, size_t r, float *scores)
{
    size_t n = n_seen(op, p, r), k = op->dst[0].n[0];
    int32_t *list = tensor_row(&op->dst[0], r);

    for (size_t i = 0; i < k; i++) /* what is behind a short list is zero */
        list[i] = i < n ? (int32_t)i : 0;
    if (n <= k)
        return;
    for (size_t i = k / 2; i-- > 0;)
        settle(scores, list, k, i, list[i]);
    for (size_t i = k; i < n; i++)
        if (scores[i] > scores[list[0]])
            settle(scores, list, k, 0, (int32_t)i);
    sort_list(scores, n, list, k);
}

static bool must_choose(const struct op *op, const struct part *p, size_t r)
{
    return n_seen(op, p, r) > op->dst[0].n[0];
}

/* Every thread scores its chunks of all rows; then rows are shared out. */
static void run_split(const struct op *op, const struct part *p, const struct space *s)
{
    for (size_t r = 0; r < p->rows; r++) {
        if (!must_choose(op, p, r))
            continue;
        load_queries(op, p, s, r);
        for (size_t c = p->thread; c * KERNELS_CHUNK < n_seen(op, p, r); c += p->n_threads)
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
            for (size_t c = 0; c * KERNELS_CHUNK < n_seen(op, p, r); c++)
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
