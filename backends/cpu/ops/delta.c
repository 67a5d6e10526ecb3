/*
 * DELTA: the gated delta rule; DECAY: how fast a state forgets.  The rows of a
 * batch follow each other; threads share out blocks of columns of heads, and a
 * block of the state stays in the first cache for all rows.
 */
#include "backends/cpu/cpu.h"
#include "common/alloc.h"

_Static_assert(KERNELS_COLS == OP_STATE_COLS, "the kernels' columns are the state's");

enum { SRC_Q, SRC_K, SRC_V, SRC_DECAY, SRC_RATE, SRC_STATE };

static size_t floats(const struct tensor *t)
{
    return t->stride[1] / sizeof(float);
}

static void run_block(const struct op *op, const struct part *p, size_t head, size_t block)
{
    const struct op_delta_params *o = &op->p.delta;
    const struct tensor *state = &op->src[SRC_STATE], *decay = &op->src[SRC_DECAY];
    bool each = decay->n[0] != o->n_heads;
    size_t k_head = o->adjacent ? head / (o->n_heads / o->n_k_heads) : head % o->n_k_heads;
    size_t col = block * OP_STATE_COLS;
    struct delta d = {
        .q = (const float *)op->src[SRC_Q].data + k_head * o->k_dim,
        .k = (const float *)op->src[SRC_K].data + k_head * o->k_dim,
        .v = (const float *)op->src[SRC_V].data + head * o->v_dim + col,
        .decay = (const float *)decay->data + head * (each ? o->k_dim : 1),
        .rate = (const float *)op->src[SRC_RATE].data + head,
        .q_stride = floats(&op->src[SRC_Q]),
        .k_stride = floats(&op->src[SRC_K]),
        .v_stride = floats(&op->src[SRC_V]),
        .decay_stride = floats(decay),
        .rate_stride = floats(&op->src[SRC_RATE]),
        .decay_step = each,
        .q_scale = o->q_scale,
        .k_scale = o->k_scale,
        .state = (float *)(void *)((char *)state->data + head * state->stride[3] +
                                   block * state->stride[2]),
        .o = (float *)op->dst[0].data + head * o->v_dim + col,
        .o_stride = floats(&op->dst[0]),
        .rows = p->rows,
        .n = o->k_dim,
        .cols = MIN(o->v_dim - col, (size_t)OP_STATE_COLS),
    };

    p->k->delta(&d);
}

static void run_delta(const struct op *op, const struct part *p)
{
    size_t blocks = op->src[SRC_STATE].n[2], from, to;

    team_share(op->p.delta.n_heads * blocks, 1, p->thread, p->n_threads, &from, &to);
    for (size_t i = from; i < to; i++)
        run_block(op, p, i / blocks, i % blocks);
}

static bool can_delta(const struct op *op, const struct kernels *k)
{
    (void)k;
    return op->p.delta.k_dim <= KERNELS_HEAD_MAX;
}

const struct driver driver_DELTA = {.run = run_delta, .can = can_delta};

/* -- DECAY ------------------------------------------------------------------------ */

#define FILL 256

/* e^(a x) with one a for all of x. */
static void exp_group(const struct kernels *k, const float *x, float a, float *y, size_t n)
{
    float same[FILL];

    for (size_t i = 0; i < MIN(n, (size_t)FILL); i++)
        same[i] = a;
    for (size_t i = 0; i < n; i += FILL)
        k->exp_mul(x + i, same, y + i, MIN(n - i, (size_t)FILL));
}

static void decay_row(const struct op *op, const struct kernels *k, const float *soft, float *y)
{
    const float *a = op->src[2].data;
    size_t n = op->dst[0].n[0], group = n / op->src[2].n[0];

    if (group == 1) {
        k->exp_mul(soft, a, y, n);
        return;
    }
    for (size_t i = 0; i < n; i += group)
        exp_group(k, soft + i, a[i / group], y + i, group);
}

static void run_decay(const struct op *op, const struct part *p)
{
    const float *bias = op->src[1].fmt ? op->src[1].data : NULL;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        float *soft = tensor_f32(&op->dst[0], r);

        p->k->softplus(tensor_f32(&op->src[0], r), bias, soft, op->dst[0].n[0]);
        if (op->dst[1].fmt)
            decay_row(op, p->k, soft, tensor_f32(&op->dst[1], r));
    }
}

const struct driver driver_DECAY = {.run = run_decay, .by_row = true};
