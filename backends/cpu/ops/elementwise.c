/* GLU, ADD, SCALE, SOFTCAP, LERP: one output from one element of each input. */
#include "backends/cpu/ops/elementwise.h"

#include "backends/cpu/math.h"
#include "common/alloc.h"

const float elementwise_ones[ELEMENTWISE_ONES] = {[0 ... ELEMENTWISE_ONES - 1] = 1.0f};

/* Squared ReLU has no transcendental: the compiler's vectors have these bits too. */
static void relu2_mul(const float *gate, const float *up, float *y, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = gate[i] > 0.0f ? gate[i] : 0.0f;

        y[i] = up ? x * x * up[i] : x * x;
    }
}

/* The sigmoid alone is that of 1. */
static void sigmoid_mul(const struct kernels *k, const float *gate, const float *up, float *y,
                        size_t n)
{
    if (up)
        k->sigmoid_mul(gate, up, y, n);
    for (size_t i = 0; i < n && !up; i += ELEMENTWISE_ONES)
        k->sigmoid_mul(gate + i, elementwise_ones, y + i, MIN(n - i, (size_t)ELEMENTWISE_ONES));
}

#define PIECE 256

/* silu of a gate that is cut from above, times a factor that is cut to both sides. */
static void limited(const struct kernels *k, float limit, const float *gate, const float *up,
                    float *y, size_t n)
{
    float g[PIECE], u[PIECE];

    for (size_t at = 0; at < n; at += PIECE) {
        size_t len = MIN(n - at, (size_t)PIECE);

        for (size_t i = 0; i < len; i++) {
            g[i] = gate[at + i] > limit ? limit : gate[at + i];
            u[i] = up[at + i] > limit ? limit : up[at + i];
            u[i] = u[i] < -limit ? -limit : u[i];
        }
        k->silu_mul(g, u, y + at, len);
    }
}

void glu_row(const struct kernels *k, enum op_act act, float limit, const float *gate,
             const float *up, float *y, size_t n)
{
    switch (act) {
    case OP_ACT_SILU:
        if (limit > 0.0f)
            limited(k, limit, gate, up, y, n);
        else
            k->silu_mul(gate, up, y, n);
        break;
    case OP_ACT_GELU: k->gelu_mul(gate, up, y, n); break;
    case OP_ACT_CLAMPED: k->clamped_mul(gate, up, y, n); break;
    case OP_ACT_RELU2: relu2_mul(gate, up, y, n); break;
    case OP_ACT_SIGMOID: sigmoid_mul(k, gate, up, y, n); break;
    case OP_ACT_NONE: k->mul(gate, up, y, n); break;
    }
}

static void run_glu(const struct op *op, const struct part *p)
{
    const struct tensor *up = &op->src[1];
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        glu_row(p->k, op->p.glu.act, op->p.glu.limit, tensor_f32(&op->src[0], r),
                up->fmt ? tensor_f32(up, r) : NULL, tensor_f32(&op->dst[0], r), op->dst[0].n[0]);
}

static void run_add(const struct op *op, const struct part *p)
{
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        p->k->add(tensor_f32(&op->src[0], r), tensor_f32(&op->src[1], r),
                  tensor_f32(&op->dst[0], r), op->dst[0].n[0]);
}

/* In double and by scalar code alone, so that every machine has the same. */
static float scale_at(const struct op *op, size_t pos)
{
    double s = op->p.scale.s;

    if (op->src[1].fmt && op->src[1].n[0] == 1)
        s *= ((const float *)op->src[1].data)[0];
    if (op->p.scale.temperature != 0.0f)
        s *= 1.0 + op->p.scale.temperature *
                       math_log64(1.0 + (double)((pos + op->p.scale.offset) / op->p.scale.step));
    return (float)s;
}

static void run_scale(const struct op *op, const struct part *p)
{
    const struct tensor *w = &op->src[1];
    size_t n = op->dst[0].n[0], from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *x = tensor_f32(&op->src[0], r);
        float *y = tensor_f32(&op->dst[0], r);

        if (w->fmt && w->n[0] > 1) {
            p->k->mul(x, w->data, y, n);
            x = y;
        }
        p->k->scale(x, scale_at(op, p->run->pos + r), y, n);
    }
}

static void run_softcap(const struct op *op, const struct part *p)
{
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        p->k->softcap(tensor_f32(&op->src[0], r), op->p.softcap.cap, tensor_f32(&op->dst[0], r),
                      op->dst[0].n[0]);
}

/* Plain C: a product and two sums have the same bits in all of the compiler's vectors. */
static void run_lerp(const struct op *op, const struct part *p)
{
    const struct tensor *t = &op->src[2];
    size_t n = op->dst[0].n[0], from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++) {
        const float *a = tensor_f32(&op->src[0], r), *b = tensor_f32(&op->src[1], r);
        const float *share = tensor_f32(t, t->n[1] == 1 ? 0 : r);
        float *y = tensor_f32(&op->dst[0], r);

        for (size_t i = 0; i < n; i++)
            y[i] = a[i] + (b[i] - a[i]) * share[i];
    }
}

const struct driver driver_LERP = {.run = run_lerp, .by_row = true};
const struct driver driver_GLU = {.run = run_glu, .by_row = true};
const struct driver driver_ADD = {.run = run_add, .by_row = true};
const struct driver driver_SCALE = {.run = run_scale, .by_row = true};
const struct driver driver_SOFTCAP = {.run = run_softcap, .by_row = true};
