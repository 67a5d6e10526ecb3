/*
 * CONV: short causal convolutions.  Threads share out strips of columns and
 * take all rows of a strip, so that each keeps its own part of the inputs.
 */
#include <string.h>

#include "backends/cpu/cpu.h"
#include "common/alloc.h"

#define STRIP 256 /* columns: the rows of a strip stay in the first cache */

enum { SRC_X, SRC_TAPS, SRC_BIAS, SRC_KEPT };

/* Columns [from, from + n) of src0, and where they go. */
struct strip {
    size_t from, n;
    const struct tensor *dst;
    size_t to;
};

/* The i-th strip; false when there are no more. */
static bool strip_at(const struct op *op, size_t i, struct strip *ret)
{
    size_t from = 0;

    for (int d = 0; d < OP_MAX_DST && op->dst[d].fmt; d++) {
        size_t width = op->dst[d].n[0], strips = (width + STRIP - 1) / STRIP;

        if (i < strips) {
            ret->to = i * STRIP;
            ret->from = from + ret->to;
            ret->n = MIN(width - ret->to, (size_t)STRIP);
            ret->dst = &op->dst[d];
            return true;
        }
        i -= strips;
        from += width;
    }
    return false;
}

/* The input of a row of [kept; src0], which begins taps − 1 before the batch. */
static float *input(const struct op *op, const struct strip *s, size_t row)
{
    const struct tensor *kept = &op->src[SRC_KEPT];

    if (row < kept->n[1])
        return tensor_f32(kept, row) + op->p.conv.column + s->from;
    return tensor_f32(&op->src[SRC_X], row - kept->n[1]) + s->from;
}

static void run_strip(const struct op *op, const struct part *p, const struct strip *s)
{
    const struct tensor *taps = &op->src[SRC_TAPS];
    size_t n_taps = taps->n[0];
    const float *x[OP_CONV_TAPS];
    float w[OP_CONV_TAPS * STRIP];
    struct conv c = {.x = x,
                     .w = w,
                     .w_stride = STRIP,
                     .taps = n_taps,
                     .bias = op->src[SRC_BIAS].fmt ? (const float *)op->src[SRC_BIAS].data + s->from
                                                   : NULL,
                     .silu = op->p.conv.silu,
                     .n = s->n};

    for (size_t i = 0; i < s->n; i++)
        for (size_t j = 0; j < n_taps; j++)
            w[j * STRIP + i] = tensor_f32(taps, s->from + i)[j];
    for (size_t r = 0; r < p->rows; r++) {
        for (size_t j = 0; j < n_taps; j++)
            x[j] = input(op, s, r + j);
        c.y = tensor_f32(s->dst, r) + s->to;
        p->k->conv(&c);
    }
    for (size_t j = 0; j + 1 < n_taps; j++)
        memmove(input(op, s, j), input(op, s, p->rows + j), s->n * sizeof(float));
}

static void run(const struct op *op, const struct part *p)
{
    struct strip s;

    for (size_t i = p->thread; strip_at(op, i, &s); i += p->n_threads)
        run_strip(op, p, &s);
}

const struct driver driver_CONV = {.run = run};
