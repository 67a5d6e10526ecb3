/* SLICE and JOIN: columns taken out of rows and put side by side; nothing is computed. */
#include <string.h>

#include "backends/cpu/cpu.h"

static void run_slice(const struct op *op, const struct part *p)
{
    size_t first = op->p.slice.from, n = op->p.slice.n, group = op->p.slice.group;
    size_t groups = op->dst[0].n[0] / n;
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *x = tensor_f32(&op->src[0], r) + first;
        float *y = tensor_f32(&op->dst[0], r);

        for (size_t g = 0; g < groups; g++)
            memcpy(y + g * n, x + g * group, n * sizeof(float));
    }
}

static void run_join(const struct op *op, const struct part *p)
{
    size_t na = op->p.join.n[0], nb = op->p.join.n[1];
    size_t groups = op->dst[0].n[0] / (na + nb);
    size_t step = op->src[1].n[0] == nb ? 0 : nb; /* one for all, or one for each */
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *a = tensor_f32(&op->src[0], r), *b = tensor_f32(&op->src[1], r);
        float *y = tensor_f32(&op->dst[0], r);

        for (size_t g = 0; g < groups; g++, y += na + nb) {
            memcpy(y, a + g * na, na * sizeof(float));
            memcpy(y + na, b + g * step, nb * sizeof(float));
        }
    }
}

const struct driver driver_SLICE = {.run = run_slice, .by_row = true};
const struct driver driver_JOIN = {.run = run_join, .by_row = true};
