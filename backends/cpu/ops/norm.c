/* RMSNORM, LAYERNORM: of whole rows, or of each group of a row (the heads of q and k). */
#include "backends/cpu/cpu.h"

static void run_rmsnorm(const struct op *op, const struct part *p)
{
    const struct tensor *x = &op->src[0];
    const struct tensor *w = &op->src[1];
    size_t group = op->p.rmsnorm.group;
    /* Weights of a whole row go along with it; those of one group serve every group. */
    size_t w_step = w->fmt && w->n[0] != group ? group : 0;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        for (size_t i = 0; i < x->n[0]; i += group)
            p->k->rmsnorm(tensor_f32(x, r) + i,
                          w->fmt ? (const float *)w->data + i / group * w_step : NULL,
                          op->p.rmsnorm.eps, tensor_f32(&op->dst[0], r) + i, group);
}

static void run_layernorm(const struct op *op, const struct part *p)
{
    const struct tensor *x = &op->src[0], *w = &op->src[1], *b = &op->src[2];
    size_t group = op->p.layernorm.group;
    size_t w_step = w->fmt && w->n[0] != group ? group : 0;
    size_t b_step = b->fmt && b->n[0] != group ? group : 0;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        for (size_t i = 0; i < x->n[0]; i += group)
            p->k->layernorm(tensor_f32(x, r) + i,
                            w->fmt ? (const float *)w->data + i / group * w_step : NULL,
                            b->fmt ? (const float *)b->data + i / group * b_step : NULL,
                            op->p.layernorm.eps, tensor_f32(&op->dst[0], r) + i, group);
}

const struct driver driver_RMSNORM = {.run = run_rmsnorm, .by_row = true};
const struct driver driver_LAYERNORM = {.run = run_layernorm, .by_row = true};
