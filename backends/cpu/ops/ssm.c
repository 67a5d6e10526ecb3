/*
 * SSM: selective state spaces, of Mamba-2 (a decay for each head) and of Mamba
 * (one for each element of the state).  Threads share out blocks of columns of
 * heads and take all rows of them, as with DELTA.
 */
#include "backends/cpu/cpu.h"
#include "common/alloc.h"

enum { SRC_X, SRC_B, SRC_C, SRC_DT, SRC_DECAY, SRC_D, SRC_STATE };

static size_t floats(const struct tensor *t)
{
    return t->stride[1] / sizeof(float);
}

/* Numbers of the columns that are there; zeros past them. */
static void fill_columns(const struct op *op, size_t head, size_t col, size_t cols, float *a,
                         float *d)
{
    const struct tensor *by = &op->src[SRC_DECAY];
    size_t n = op->p.ssm.n_state;

    for (size_t c = 0; c < OP_STATE_COLS; c++) {
        d[c] = 0.0f;
        if (c < cols)
            d[c] = ((const float *)op->src[SRC_D].data)[op->p.ssm.each ? col + c : head];
        for (size_t i = 0; i < n && op->p.ssm.each; i++)
            a[i * OP_STATE_COLS + c] = c < cols ? tensor_f32(by, col + c)[i] : 0.0f;
    }
}

static void run_block(const struct op *op, const struct part *p, size_t head, size_t block)
{
    const struct op_ssm_params *o = &op->p.ssm;
    const struct tensor *state = &op->src[SRC_STATE];
    size_t group = head / (o->n_heads / o->n_groups), col = block * OP_STATE_COLS;
    float a[OP_SSM_EACH * OP_STATE_COLS], d[OP_STATE_COLS];
    struct ssm s = {
        .x = (const float *)op->src[SRC_X].data + head * o->head_dim + col,
        .b = (const float *)op->src[SRC_B].data + group * o->n_state,
        .c = (const float *)op->src[SRC_C].data + group * o->n_state,
        .dt = (const float *)op->src[SRC_DT].data + (o->each ? col : head),
        .decay = o->each ? NULL : (const float *)op->src[SRC_DECAY].data + head,
        .x_stride = floats(&op->src[SRC_X]),
        .b_stride = floats(&op->src[SRC_B]),
        .c_stride = floats(&op->src[SRC_C]),
        .dt_stride = floats(&op->src[SRC_DT]),
        .decay_stride = o->each ? 0 : floats(&op->src[SRC_DECAY]),
        .a = o->each ? a : NULL,
        .dt_each = o->each,
        .d = d,
        .state = (float *)(void *)((char *)state->data + head * state->stride[3] +
                                   block * state->stride[2]),
        .y = (float *)op->dst[0].data + head * o->head_dim + col,
        .y_stride = floats(&op->dst[0]),
        .rows = p->rows,
        .n = o->n_state,
        .cols = MIN(o->head_dim - col, (size_t)OP_STATE_COLS),
    };

    fill_columns(op, head, col, s.cols, a, d);
    p->k->ssm(&s);
}

static void run(const struct op *op, const struct part *p)
{
    size_t blocks = op->src[SRC_STATE].n[2], from, to;

    team_share(op->p.ssm.n_heads * blocks, 1, p->thread, p->n_threads, &from, &to);
    for (size_t i = from; i < to; i++)
        run_block(op, p, i / blocks, i % blocks);
}

const struct driver driver_SSM = {.run = run};
