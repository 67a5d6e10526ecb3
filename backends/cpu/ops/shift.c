/* SHIFT: the row before each.  Threads share out columns, so that each keeps its own part of the last row. */
#include <string.h>

#include "backends/cpu/cpu.h"

static void run(const struct op *op, const struct part *p)
{
    const struct tensor *kept = &op->src[1];
    float *last = tensor_f32(kept, kept->n[1] - 1) + op->p.shift.column;
    size_t from, to, bytes;

    team_share(op->dst[0].n[0], 16, p->thread, p->n_threads, &from, &to);
    bytes = (to - from) * sizeof(float);
    if (!bytes)
        return;
    memcpy(tensor_f32(&op->dst[0], 0) + from, last + from, bytes);
    for (size_t r = 1; r < p->rows; r++)
        memcpy(tensor_f32(&op->dst[0], r) + from, tensor_f32(&op->src[0], r - 1) + from, bytes);
    memcpy(last + from, tensor_f32(&op->src[0], p->rows - 1) + from, bytes);
}

const struct driver driver_SHIFT = {.run = run};
