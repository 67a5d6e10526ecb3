/*
 * WKV: RWKV-7's generalised delta rule (Peng et al. 2025, arXiv 2503.14456).
 * Threads share out heads, and take all rows of a head: its state stays in the
 * first cache, and what a row makes of keys and rates serves all of its columns.
 */
#include <math.h>

#include "backends/cpu/ops/elementwise.h"
#include "common/alloc.h"

enum { SRC_R, SRC_DECAY, SRC_K, SRC_V, SRC_RATE, SRC_REMOVE, SRC_WRITE, SRC_BONUS, SRC_STATE };

#define DECAY_SCALE -0.60653066f /* -e^(-1/2): no decay is below e^-0.6065 */
#define UNIT_EPS    1e-24f       /* of the squared length of a key that is made a unit vector */

_Static_assert(KERNELS_COLS == OP_STATE_COLS, "the kernels' columns are the state's");

/* What a head makes of a row. */
struct row {
    float decay[KERNELS_HEAD_MAX], k[KERNELS_HEAD_MAX];
    float seen[KERNELS_HEAD_MAX], write[KERNELS_HEAD_MAX];
};

static const float *at(const struct op *op, int src, size_t r, size_t head)
{
    return tensor_f32(&op->src[src], r) + head * op->p.wkv.head_dim;
}

/* e^(DECAY_SCALE * sigmoid(x)) */
static void make_decay(const struct kernels *k, const float *x, float *y, size_t n)
{
    float scale[KERNELS_HEAD_MAX];

    for (size_t i = 0; i < n; i++)
        scale[i] = DECAY_SCALE;
    k->sigmoid_mul(x, elementwise_ones, y, n);
    k->exp_mul(y, scale, y, n);
}

/* The keys to remove are unit vectors; what is written grows with the rate. */
static void make_row(const struct op *op, const struct kernels *k, size_t r, size_t head,
                     struct row *row)
{
    const float *key = at(op, SRC_K, r, head), *remove = at(op, SRC_REMOVE, 0, head);
    const float *write = at(op, SRC_WRITE, 0, head);
    float rate[KERNELS_HEAD_MAX];
    size_t n = op->p.wkv.head_dim;

    make_decay(k, at(op, SRC_DECAY, r, head), row->decay, n);
    k->sigmoid_mul(at(op, SRC_RATE, r, head), elementwise_ones, rate, n);
    k->mul(key, remove, row->write, n);
    k->rmsnorm(row->write, NULL, UNIT_EPS / (float)n, row->seen, n);
    k->scale(row->seen, -1.0f / sqrtf((float)n), row->seen, n);
    for (size_t i = 0; i < n; i++) {
        row->write[i] = -row->seen[i] * rate[i];
        row->k[i] = key[i] + (rate[i] - 1.0f) * (key[i] * write[i]);
    }
}

/* Values times Σ k r bonus, in sixteen partials. */
static void give_bonus(const struct op *op, const struct kernels *k, size_t r, size_t head,
                       const struct row *row)
{
    const float *receptance = at(op, SRC_R, r, head), *bonus = at(op, SRC_BONUS, 0, head);
    size_t n = op->p.wkv.head_dim;
    float p[16] = {0};

    for (size_t i = 0; i < n; i++)
        p[i % 16] += row->k[i] * receptance[i] * bonus[i];
    k->scale(at(op, SRC_V, r, head), kernels_tree16(p), tensor_f32(&op->dst[1], r) + head * n, n);
}

static void run_head(const struct op *op, const struct part *p, size_t head)
{
    const struct tensor *state = &op->src[SRC_STATE];
    size_t n = op->p.wkv.head_dim;
    struct row row;

    for (size_t r = 0; r < p->rows; r++) {
        make_row(op, p->k, r, head, &row);
        for (size_t b = 0; b < state->n[2]; b++) {
            size_t col = b * OP_STATE_COLS;
            struct wkv w = {
                .r = at(op, SRC_R, r, head),
                .k = row.k,
                .decay = row.decay,
                .seen = row.seen,
                .write = row.write,
                .v = at(op, SRC_V, r, head) + col,
                .state = (float *)(void *)((char *)state->data + head * state->stride[3] +
                                           b * state->stride[2]),
                .o = tensor_f32(&op->dst[0], r) + head * n + col,
                .n = n,
                .cols = MIN(n - col, (size_t)OP_STATE_COLS),
            };

            p->k->wkv(&w);
        }
        give_bonus(op, p->k, r, head, &row);
    }
}

static void run(const struct op *op, const struct part *p)
{
    for (size_t h = p->thread; h < op->p.wkv.n_heads; h += p->n_threads)
        run_head(op, p, h);
}

static bool can(const struct op *op, const struct kernels *k)
{
    (void)k;
    return op->p.wkv.head_dim <= KERNELS_HEAD_MAX;
}

const struct driver driver_WKV = {.run = run, .can = can};
