/* ROUTER: the experts of each row, best first, and their weights. */
#include <math.h>
#include <string.h>

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

/* What a group is worth: the sum of its two best scores. */
static float group_score(const float *score, size_t n)
{
    float first = score[0], second = -INFINITY;

    for (size_t e = 1; e < n; e++) {
        if (score[e] > first) {
            second = first;
            first = score[e];
        } else if (score[e] > second) {
            second = score[e];
        }
    }
    return n < 2 ? first : first + second;
}

/* Takes out of the choice the experts of all but the best groups. */
static void limit_groups(const struct op *op, const float *score, bool *taken)
{
    size_t n_group = op->p.router.n_group, size = op->p.router.n_expert / n_group;
    float worth[OP_MAX_EXPERTS];
    bool in[OP_MAX_EXPERTS] = {false};

    for (size_t g = 0; g < n_group; g++)
        worth[g] = group_score(score + g * size, size);
    for (size_t i = 0; i < op->p.router.n_group_used; i++)
        in[best_left(worth, in, n_group)] = true;
    for (size_t e = 0; e < op->p.router.n_expert; e++)
        taken[e] = !in[e / size];
}

static bool by_logits(enum op_gating gating)
{
    return gating == OP_GATING_SOFTMAX_CHOSEN || gating == OP_GATING_SIGMOID_CHOSEN;
}

/* What the experts compete with, before the bias. */
static void scores(enum op_gating gating, const struct kernels *k, const float *logits, float *out,
                   size_t n)
{
    if (by_logits(gating))
        memcpy(out, logits, n * sizeof(float));
    else if (gating == OP_GATING_SOFTMAX)
        k->softmax(logits, out, n);
    else if (gating == OP_GATING_SQRT_SOFTPLUS)
        for (size_t e = 0; e < n; e++)
            out[e] = sqrtf(math_softplus(logits[e]));
    else
        for (size_t e = 0; e < n; e++)
            out[e] = math_sigmoid(logits[e]);
}

static void weigh(const struct op *op, const struct kernels *k, const int32_t *ids, float *weights)
{
    const float *factors = op->src[2].fmt ? op->src[2].data : NULL;
    size_t n_used = op->p.router.n_used;
    float sum = 0.0f;

    if (op->p.router.gating == OP_GATING_SOFTMAX_CHOSEN)
        k->softmax(weights, weights, n_used);
    if (op->p.router.gating == OP_GATING_SIGMOID_CHOSEN)
        for (size_t i = 0; i < n_used; i++)
            weights[i] = math_sigmoid(weights[i]);
    for (size_t i = 0; i < n_used; i++)
        sum += weights[i];
    sum = sum < SUM_LEAST ? SUM_LEAST : sum;
    for (size_t i = 0; i < n_used; i++) {
        if (op->p.router.normalise)
            weights[i] = weights[i] / sum;
        weights[i] *= op->p.router.scale;
        if (factors)
            weights[i] *= factors[ids[i]];
    }
}

/* Experts of a token, as the file lists them; one that is not there is the first. */
static void look_up(const struct op *op, const struct part *p, size_t r, const float *prob,
                    int32_t *ids, float *weights)
{
    size_t row = p->rows == p->run->rows ? r : (size_t)p->run->rows_out[r];
    const int32_t *list = tensor_row(&op->src[3], (size_t)p->run->tokens[row]);

    for (size_t i = 0; i < op->p.router.n_used; i++) {
        ids[i] = (uint32_t)list[i] < op->p.router.n_expert ? list[i] : 0;
        weights[i] = prob[ids[i]];
    }
}

static void choose(const struct op *op, const struct part *p, size_t r)
{
    size_t n = op->p.router.n_expert;
    const float *bias = op->src[1].fmt ? op->src[1].data : NULL;
    int32_t *ids = tensor_row(&op->dst[0], r);
    float *weights = tensor_f32(&op->dst[1], r);
    float prob[OP_MAX_EXPERTS], score[OP_MAX_EXPERTS];
    bool taken[OP_MAX_EXPERTS] = {false};

    scores(op->p.router.gating, p->k, tensor_f32(&op->src[0], r), prob, n);
    for (size_t e = 0; e < n; e++)
        score[e] = bias ? prob[e] + bias[e] : prob[e];
    if (op->p.router.n_group > 1)
        limit_groups(op, score, taken);
    if (op->src[3].fmt)
        look_up(op, p, r, prob, ids, weights);
    for (size_t i = 0; i < op->p.router.n_used && !op->src[3].fmt; i++) {
        size_t e = best_left(score, taken, n);

        taken[e] = true;
        ids[i] = (int32_t)e;
        weights[i] = prob[e];
    }
    weigh(op, p->k, ids, weights);
}

static void run(const struct op *op, const struct part *p)
{
    size_t from, to;

    part_rows(p, &from, &to);
    for (size_t r = from; r < to; r++)
        choose(op, p, r);
}

const struct driver driver_ROUTER = {.run = run, .by_row = true};
