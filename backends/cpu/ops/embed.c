/* EMBED: rows of the table of tokens, of positions, or its first row, decoded to f32. */
#include "backends/cpu/cpu.h"

static size_t row_of(const struct op *op, const struct part *p, size_t r)
{
    switch (op->p.embed.by) {
    case OP_EMBED_TOKEN: return (size_t)p->run->tokens[r];
    case OP_EMBED_POSITION: return p->run->pos + r;
    case OP_EMBED_FIRST: break;
    }
    return 0;
}

static void run(const struct op *op, const struct part *p)
{
    const struct tensor *table = &op->src[0];
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        float *y = tensor_f32(&op->dst[0], r);

        table->fmt->to_f32(tensor_row(table, row_of(op, p, r)), y, table->n[0]);
        if (op->p.embed.scale != 1.0f)
            p->k->scale(y, op->p.embed.scale, y, table->n[0]);
    }
}

const struct driver driver_EMBED = {.run = run, .by_row = true};
