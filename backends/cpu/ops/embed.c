/* EMBED: rows of the table of tokens, or of that of positions, decoded to f32. */
#include "backends/cpu/cpu.h"

static void run(const struct op *op, const struct part *p)
{
    const struct tensor *table = &op->src[0];
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        size_t row = op->p.embed.by_position ? p->run->pos + r : (size_t)p->run->tokens[r];
        float *y = tensor_f32(&op->dst[0], r);

        table->fmt->to_f32(tensor_row(table, row), y, table->n[0]);
        if (op->p.embed.scale != 1.0f)
            p->k->scale(y, op->p.embed.scale, y, table->n[0]);
    }
}

const struct driver driver_EMBED = {.run = run, .by_row = true};
