/*
 * Mixtures whose experts are not all in memory.  Up to the router the layer runs
 * as always; then the choice is known and the reads of what is missing begin,
 * and while they fly the ops between router and mixture run (a shared expert),
 * then the experts that are there, then each of the rest as it lands.  The sum
 * is taken at the end, in rank order, so the bits are those of a single run.
 */

#include <assert.h>

#include "daemon/graph/graph_priv.h"

enum { MOE_IDS = 1, MOE_GATE = 3 };

static bool in_pieces(const struct node *n, const struct residency *r)
{
    return n->op.kind == OP_MOE && n->src[MOE_GATE].kind == REF_WEIGHT &&
           residency_is_sliced(r, n->src[MOE_GATE].index);
}

bool program_has_pieces(const struct program *p, const struct group *g, const struct residency *r)
{
    for (size_t i = 0; i < g->n_uses; i++)
        if (residency_is_sliced(r, p->uses[g->first_use + i].id))
            return true;
    return false;
}

/* The op that writes the ids of this mixture. */
static size_t router_of(const struct program *p, size_t from, size_t moe)
{
    const struct ref *ids = &p->nodes[moe].src[MOE_IDS];
    size_t i = moe;

    while (i > from &&
           (p->nodes[i].dst[0].kind != REF_VALUE || p->nodes[i].dst[0].index != ids->index))
        i--;
    return i;
}

static int run_ops(const struct program_place *place, const struct op *ops, size_t from, size_t to,
                   const struct op_run *run, struct err *err)
{
    if (from == to)
        return 0;
    return place->ops->run(place->be, ops + from, to - from, run, place->scratch, err);
}

static void begin(const struct program *p, const struct program_place *place, const struct op *ops,
                  size_t moe, const struct op_run *run)
{
    const struct tensor *ids = &ops[moe].src[MOE_IDS];
    struct residency_choice c = {.ids = ids->data,
                                 .stride = ids->stride[1] / sizeof(int32_t),
                                 .rows = run->rows,
                                 .n_used = ops[moe].p.moe.n_used};

    for (int i = 0; i < RESIDENCY_PARTS; i++) {
        c.parts[i] = p->nodes[moe].src[MOE_GATE + i].index;
        c.offsets[i] = p->nodes[moe].src[MOE_GATE + i].offset;
    }
    residency_experts_begin(place->residency, &c);
}

/* The experts as they come, then the sum. */
static int run_experts(const struct program_place *place, const struct op *moe,
                       const struct op_run *run, struct err *err)
{
    struct op_experts experts = {.first = true};
    struct op op = *moe;
    int n;

    op.p.moe.experts = &experts;
    while ((n = residency_experts_next(place->residency, &experts.data, err)) > 0) {
        int r;

        if (run->cancel && *run->cancel)
            r = err_set(err, ERR_CANCELLED, "cancelled within layer %d", op.layer);
        else
            r = place->ops->run(place->be, &op, 1, run, place->scratch, err);
        if (r < 0)
            return r;
        experts.first = false;
    }
    experts.last = true;
    return n < 0 ? n : place->ops->run(place->be, &op, 1, run, place->scratch, err);
}

int program_run_pieces(const struct program *p, const struct program_place *place, struct op *ops,
                       size_t from, size_t to, const struct op_run *run, struct err *err)
{
    size_t at = from;
    int r = 0;

    for (size_t i = from; i < to && r >= 0; i++) {
        size_t router;

        if (!in_pieces(&p->nodes[i], place->residency))
            continue;
        router = router_of(p, at, i);
        r = run_ops(place, ops, at, router + 1, run, err);
        if (r < 0)
            return r;
        begin(p, place, ops, i, run);
        r = run_ops(place, ops, router + 1, i, run, err);
        if (r >= 0)
            r = run_experts(place, &ops[i], run, err);
        if (r < 0)
            residency_experts_drop(place->residency);
        at = i + 1;
    }
    return r < 0 ? r : run_ops(place, ops, at, to, run, err);
}
