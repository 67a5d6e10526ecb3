/* ROUTER: the experts of each row, best first, and their weights. */
#include "backends/cpu/cpu.h"
#include "backends/cpu/math.h"

/* A sum of weights below this, the smallest normal f16, is taken as this. */
#define SUM_LEAST 6.103515625e-5f

/* The best not yet taken by score; the lowest id among equals, and among NaN. */
static size_t best_left(const float *score, const bool *taken, size_t n)
{
    size_t best = n;

    for (size_t e = 0; e < n; e++)
        if (!taken[e] && (best == n || score[e] > score[best]))
            best = e;
    return best;
}

static void choose(const struct op *op, const struct kernels *k, size_t r)
{
    size_t n = op->p.router.n_expert, n_used = op->p.router.n_used;
    const float *logits = tensor_f32(&op->src[0], r);
    const float *bias = op->src[1].fmt ? op->src[1].data : NULL;
    int32_t *ids = tensor_row(&op->dst[0], r);
    float *weights = tensor_f32(&op->dst[1], r);
    float prob[OP_MAX_EXPERTS], score[OP_MAX_EXPERTS], sum = 0.0f;
    bool taken[OP_MAX_EXPERTS] = {false};

    if (op->p.router.gating == OP_GATING_SOFTMAX)
        k->softmax(logits, prob, n);
    else
        for (size_t e = 0; e < n; e++)
            prob[e] = math_sigmoid(logits[e]);
    for (size_t e = 0; e < n; e++)
        score[e] = bias ? prob[e] + bias[e] : prob[e];

    for (size_t i = 0; i < n_used; i++) {
        size_t e = best_left(score, taken, n);

        taken[e] = true;
        ids[i] = (int32_t)e;
        weights[i] = prob[e];
        sum += prob[e];
    }
    sum = sum < SUM_LEAST ? SUM_LEAST : sum;
    for (size_t i = 0; i < n_used; i++) {
        if (op->p.router.normalise)
            weights[i] = weights[i] / sum;
        weights[i] *= op->p.router.scale;
    }
}

static void run(const struct op *op, const struct part *p)
{
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        choose(op, p->k, r);
}

const struct driver driver_ROUTER = {.run = run, .by_row = true};
