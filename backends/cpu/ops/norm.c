/* RMSNORM, LAYERNORM: of whole rows, or of each group of a row (the heads of q and k). */
#include "backends/cpu/cpu.h"

/* Of a group from i on: weights of a whole row go along with it; those of one group serve every group. */
static const float *of_group(const struct tensor *w, size_t group, size_t i)
{
    if (!w->fmt)
        return NULL;
    return (const float *)w->data + (w->n[0] != group ? i : 0);
}

static void run_rmsnorm(const struct op *op, const struct part *p)
{
    const struct tensor *x = &op->src[0], *w = &op->src[1], *b = &op->src[2];
    size_t group = op->p.rmsnorm.group;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        for (size_t i = 0; i < x->n[0]; i += group) {
            float *y = tensor_f32(&op->dst[0], r) + i;

            p->k->rmsnorm(tensor_f32(x, r) + i, of_group(w, group, i), op->p.rmsnorm.eps, y, group);
            if (b->fmt)
                p->k->add(y, of_group(b, group, i), y, group);
        }
}

static void run_layernorm(const struct op *op, const struct part *p)
{
    const struct tensor *x = &op->src[0], *w = &op->src[1], *b = &op->src[2];
    size_t group = op->p.layernorm.group;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        for (size_t i = 0; i < x->n[0]; i += group)
            p->k->layernorm(tensor_f32(x, r) + i, of_group(w, group, i), of_group(b, group, i),
                            op->p.layernorm.eps, tensor_f32(&op->dst[0], r) + i, group);
}

const struct driver driver_RMSNORM = {.run = run_rmsnorm, .by_row = true};
const struct driver driver_LAYERNORM = {.run = run_layernorm, .by_row = true};
