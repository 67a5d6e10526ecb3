/* A backend that remembers what routers chose; see kit_routers.h. */
#include "tests/golden/kit_routers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"

static const struct backend_ops *inner;
static struct backend_ops watched;
static struct kit_choices *to;

void kit_choices_clear(struct kit_choices *c)
{
    for (size_t i = 0; i < c->n; i++) {
        free(c->list[i].ids);
        free(c->list[i].scores);
    }
    free(c->list);
    *c = (struct kit_choices){0};
}

/* What competes: logits, or what a gating makes of them, and the bias of the choice. */
static void make_scores(const struct op *op, const float *logits, double *out)
{
    const float *bias = op->src[1].fmt ? op->src[1].data : NULL;
    size_t n = op->p.router.n_expert;
    double sum = 0;

    for (size_t e = 0; e < n; e++)
        sum += exp((double)logits[e]);
    for (size_t e = 0; e < n; e++) {
        double x = (double)logits[e];

        switch (op->p.router.gating) {
        case OP_GATING_SOFTMAX: x = exp(x) / sum; break;
        case OP_GATING_SIGMOID: x = 1 / (1 + exp(-x)); break;
        case OP_GATING_SQRT_SOFTPLUS: x = sqrt(log1p(exp(x))); break;
        case OP_GATING_SOFTMAX_CHOSEN:
        case OP_GATING_SIGMOID_CHOSEN: break;
        }
        out[e] = x + (bias ? (double)bias[e] : 0);
    }
}

static void note(const struct op *op, const struct op_run *run, size_t rows)
{
    for (size_t r = 0; to && r < rows; r++) {
        struct kit_choice *c;

        ARRAY_GROW(to->list, to->n + 1, to->cap);
        c = &to->list[to->n++];
        *c = (struct kit_choice){
            .pos = run->pos + (rows == run->rows ? r : (size_t)run->rows_out[r]),
            .layer = op->layer,
            .n_expert = op->p.router.n_expert,
            .n_used = op->p.router.n_used,
            .ids = xmemdup(tensor_row(&op->dst[0], r), op->p.router.n_used * sizeof(int32_t)),
            .scores = XNEW_ARRAY(double, op->p.router.n_expert)};
        make_scores(op, tensor_f32(&op->src[0], r), c->scores);
    }
}

/* Up to each router and on from there; behind ROWS a run has the wanted rows. */
static int run_watched(struct backend *be, const struct op *ops, size_t n, const struct op_run *run,
                       void *scratch, struct err *err)
{
    struct op_run rest = *run;
    bool cut = false;
    size_t from = 0;
    int r = 0;

    for (size_t i = 0; i < n && r >= 0; i++) {
        cut |= ops[i].kind == OP_ROWS;
        if (ops[i].kind != OP_ROUTER && i + 1 < n)
            continue;
        r = inner->run(be, ops + from, i + 1 - from, &rest, scratch, err);
        if (cut)
            rest.rows = run->n_out;
        if (r >= 0 && ops[i].kind == OP_ROUTER)
            note(&ops[i], run, rest.rows);
        from = i + 1;
    }
    return r;
}

const struct backend_ops *kit_routers_watch(const struct backend_ops *ops)
{
    inner = ops;
    watched = *ops;
    watched.run = run_watched;
    return &watched;
}

void kit_routers_to(struct kit_choices *c)
{
    to = c;
}

static bool has(const struct kit_choice *c, int32_t id)
{
    for (unsigned i = 0; i < c->n_used; i++)
        if (c->ids[i] == id)
            return true;
    return false;
}

/* The most that one who lost its place is ahead, in the exact run, of one that took it; negative: none did. */
static double apart(const struct kit_choice *a, const struct kit_choice *b)
{
    double most = -1;

    for (unsigned i = 0; i < a->n_used; i++)
        for (unsigned k = 0; k < b->n_used; k++)
            if (!has(b, a->ids[i]) && !has(a, b->ids[k]))
                most = fmax(most, fabs(a->scores[a->ids[i]] - a->scores[b->ids[k]]));
    return most;
}

struct kit_flips kit_routers_compare(const struct kit_choices *exact,
                                     const struct kit_choices *rounded, size_t end)
{
    struct kit_flips f = {.first = SIZE_MAX};
    size_t n = MIN(exact->n, rounded->n);
    bool *flipped = XNEW_ARRAY(bool, n + 1);

    for (size_t i = 0; i < n; i++) {
        const struct kit_choice *c = &exact->list[i];
        double d = apart(c, &rounded->list[i]);
        bool behind = false;

        if (d < 0 || c->pos >= end)
            continue;
        flipped[i] = true;
        f.n++;
        f.first = MIN(f.first, c->pos);
        for (size_t k = 0; k < i; k++)
            behind |= flipped[k] && exact->list[k].pos <= c->pos && exact->list[k].layer < c->layer;
        if (!behind)
            f.apart = fmax(f.apart, d);
    }
    free(flipped);
    return f;
}
