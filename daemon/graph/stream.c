/*
 * Mixtures whose experts are not all in memory.  Up to the router the layer runs
 * as always; then the choice is known and the reads of what is missing begin,
 * and while they fly the ops between router and mixture run (a shared expert),
 * then the experts that are there, then each of the rest as it lands.  The sum
 * is taken at the end, in rank order, so the bits are those of a single run.
 * Where all experts are there the layer has run in one piece, and what it chose
 * is told afterwards.
 *
 * And dense weights that stream: a long computation is cut, so that the drive is
 * given the next reads when the ones before have landed and not when it ends.
 * Rows of a matrix do not know of each other, so the bits are the same again.
 */

#include <assert.h>

#include "common/alloc.h"
#include "daemon/graph/graph_priv.h"

#define LOOK_BYTES ((size_t)64 << 20) /* a millisecond or two */
#define CUT_ROWS   64u /* at multiples of so many: no two threads share a line of the result */

static bool is_mixture(const struct node *n)
{
    return n->op.kind == OP_MOE && n->src[MOE_GATE].kind == REF_WEIGHT;
}

static bool in_pieces(const struct node *n, const struct residency *r)
{
    return is_mixture(n) && residency_is_sliced(r, n->src[MOE_GATE].index);
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

static struct residency_choice choice_of(const struct program *p, const struct op *ops, size_t moe,
                                         const struct op_run *run, bool decode)
{
    const struct tensor *ids = &ops[moe].src[MOE_IDS];
    struct residency_choice c = {.ids = ids->data,
                                 .stride = ids->stride[1] / sizeof(int32_t),
                                 .rows = run->rows,
                                 .n_used = ops[moe].p.moe.n_used,
                                 .decode = decode};

    for (int i = 0; i < RESIDENCY_PARTS; i++) {
        c.parts[i] = p->nodes[moe].src[MOE_GATE + i].index;
        c.offsets[i] = p->nodes[moe].src[MOE_GATE + i].offset;
    }
    return c;
}

void program_note_choices(const struct program *p, const struct program_place *place,
                          const struct op *ops, size_t from, size_t to, const struct op_run *run,
                          bool decode)
{
    for (size_t i = from; i < to; i++)
        if (is_mixture(&p->nodes[i]) &&
            residency_is_watched(place->residency, p->nodes[i].src[MOE_GATE].index)) {
            struct residency_choice c = choice_of(p, ops, i, run, decode);

            residency_note(place->residency, &c);
        }
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
                       size_t from, size_t to, const struct op_run *run, bool decode,
                       struct err *err)
{
    size_t at = from;
    int r = 0;

    for (size_t i = from; i < to && r >= 0; i++) {
        struct residency_choice c;
        size_t router;

        if (!in_pieces(&p->nodes[i], place->residency))
            continue;
        router = router_of(p, at, i);
        r = run_ops(place, ops, at, router + 1, run, err);
        if (r < 0)
            return r;
        c = choice_of(p, ops, i, run, decode);
        residency_experts_begin(place->residency, &c);
        r = run_ops(place, ops, router + 1, i, run, err);
        if (r >= 0)
            r = run_experts(place, &ops[i], run, err);
        if (r < 0)
            residency_experts_drop(place->residency);
        at = i + 1;
    }
    return r < 0 ? r : run_ops(place, ops, at, to, run, err);
}

/* Bytes of weights that an op multiplies by. */
static size_t factor_bytes(const struct op *op)
{
    size_t bytes = 0;

    for (unsigned i = 0; op->kind == OP_MATMUL && i < op->p.matmul.n_weights; i++)
        bytes += tensor_bytes(&op->src[1 + i]);
    return bytes;
}

/* Part k of n: a share of the rows of each weight. */
static struct op cut(const struct op *whole, size_t k, size_t n)
{
    struct op op = *whole;

    for (unsigned i = 0; i < op.p.matmul.n_weights; i++) {
        struct tensor *w = &op.src[1 + i], *bias = &op.src[4 + i], *y = &op.dst[i];
        size_t step = (w->n[1] / n + CUT_ROWS) / CUT_ROWS * CUT_ROWS;
        size_t from = MIN(k * step, w->n[1]), rows = MIN(step, w->n[1] - from);

        w->data = (char *)w->data + from * w->stride[1];
        w->n[1] = rows;
        y->data = (char *)y->data + from * sizeof(float);
        y->n[0] = rows;
        if (!bias->fmt)
            continue;
        bias->data = (char *)bias->data + from * sizeof(float);
        bias->n[0] = rows;
    }
    return op;
}

static int run_parts(const struct program_place *place, const struct op *whole, size_t n,
                     const struct op_run *run, struct err *err)
{
    int r = 0;

    for (size_t k = 0; k < n && r >= 0; k++) {
        struct op op = cut(whole, k, n);

        residency_look(place->residency);
        r = run_ops(place, &op, 0, 1, run, err);
    }
    return r;
}

int program_run_looking(const struct program_place *place, const struct op *ops, size_t from,
                        size_t to, const struct op_run *run, struct err *err)
{
    size_t look = place->look_bytes ? place->look_bytes : LOOK_BYTES;
    size_t bytes = 0, at = from;
    int r = 0;

    for (size_t i = from; i < to && r >= 0; i++) {
        size_t more = factor_bytes(&ops[i]);
        bool long_one = run->rows == 1 && more >= 2 * look; /* columns would be packed anew */

        bytes += more;
        if (bytes < look)
            continue;
        r = run_ops(place, ops, at, long_one ? i : i + 1, run, err);
        if (r >= 0 && long_one)
            r = run_parts(place, &ops[i], more / look, run, err);
        residency_look(place->residency);
        bytes = 0;
        at = i + 1;
    }
    return r < 0 ? r : run_ops(place, ops, at, to, run, err);
}
