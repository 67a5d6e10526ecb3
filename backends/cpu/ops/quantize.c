/* QUANTIZE: rows of f32 to the activations that quantised weights want. */
#include <string.h>

#include "backends/cpu/cpu.h"

static void run(const struct op *op, const struct part *p)
{
    const struct tensor *x = &op->src[0];
    enum act_kind act = op->p.quantize.act;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        if (act == ACT_F32)
            memcpy(tensor_row(&op->dst[0], r), tensor_row(x, r), x->n[0] * sizeof(float));
        else
            p->k->quantize[act](tensor_f32(x, r), x->n[0], tensor_row(&op->dst[0], r));
}

static bool can(const struct op *op, const struct kernels *k)
{
    return op->p.quantize.act == ACT_F32 || k->quantize[op->p.quantize.act];
}

const struct driver driver_QUANTIZE = {.run = run, .can = can, .by_row = true};
