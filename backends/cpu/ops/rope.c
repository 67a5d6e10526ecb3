/* ROPE: rotates the heads of each row. */
#include <string.h>

#include "backends/cpu/cpu.h"

static void run(const struct op *op, const struct part *p)
{
    const struct tensor *x = &op->src[0];
    const struct tensor *y = &op->dst[0];
    rope_fn *rotate = op->p.rope.type == OP_ROPE_NEOX ? p->k->rope_neox : p->k->rope;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        float *row = tensor_f32(y, r);

        if (x->data != y->data)
            memcpy(row, tensor_row(x, r), x->n[0] * sizeof(float));
        for (size_t i = 0; i < x->n[0]; i += op->p.rope.head_dim)
            rotate(row + i + op->p.rope.offset, tensor_f32(&op->src[1], r), op->p.rope.n_dims);
    }
}

const struct driver driver_ROPE = {.run = run, .by_row = true};
