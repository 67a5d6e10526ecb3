/* Binds a program to tensors and runs it, layer by layer.  See graph.h. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/thread.h"
#include "daemon/graph/graph_priv.h"

/* A place is bytes per row: with fewer rows all values lie closer together. */
static void *value_data(const struct program *p, const struct binding *b, graph_value v)
{
    const struct place *at = &p->places[v];
    char *arena = (char *)(uintptr_t)b->arena;

    if (p->values[v].out)
        return arena + p->batch_row_bytes * b->rows + at->at * b->n_out;
    return arena + at->at * b->rows;
}

static struct tensor bound_tensor(const struct program *p, const struct binding *b,
                                  const struct ref *ref, const struct tensor *shape)
{
    const struct value *v;

    switch (ref->kind) {
    case REF_VALUE:
        v = &p->values[ref->index];
        return value_tensor(v, v->out ? b->n_out : b->rows, value_data(p, b, ref->index));
    case REF_K: return sequence_k(b->sequence, ref->index);
    case REF_V: return sequence_v(b->sequence, ref->index);
    case REF_GROUPS: return sequence_groups(b->sequence, ref->index);
    case REF_INDEX: return sequence_index(b->sequence, ref->index);
    case REF_CONV: return sequence_conv(b->sequence, ref->index);
    case REF_STATE: return sequence_state(b->sequence, ref->index);
    default: return *shape;
    }
}

static void bind(const struct program *p, struct binding *b)
{
    if (!b->ops)
        b->ops = XNEW_ARRAY(struct op, p->n_nodes);
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct node *n = &p->nodes[i];
        struct op *op = &b->ops[i];

        *op = n->op;
        for (int d = 0; d < OP_MAX_DST; d++)
            op->dst[d] = bound_tensor(p, b, &n->dst[d], &n->op.dst[d]);
        for (int s = 0; s < OP_MAX_SRC; s++)
            op->src[s] = bound_tensor(p, b, &n->src[s], &n->op.src[s]);
    }
}

/* The tensors of a batch: those of last time when nothing has changed. */
static struct binding *binding_of(struct program *p, const struct program_place *place,
                                  const struct op_run *run)
{
    struct binding *b = &p->bindings[run->rows > 1];
    size_t n_out = MAX(run->n_out, 1); /* without any the shapes stay sound, and are not run */

    if (!b->ops || b->rows != run->rows || b->n_out != n_out || b->sequence != place->sequence ||
        b->arena != place->arena) {
        b->rows = run->rows;
        b->n_out = n_out;
        b->sequence = place->sequence;
        b->arena = place->arena;
        b->checked = false;
        bind(p, b);
    }
    return b;
}

/* Slices and rows that are not resident come by ways of their own. */
static bool is_pinned(const struct residency *r, const struct use *u)
{
    return !residency_is_sliced(r, u->id) && !residency_is_by_row(r, u->id);
}

static void unpin(const struct program *p, const struct group *g, size_t n_uses,
                  struct residency *r)
{
    for (size_t i = 0; i < n_uses; i++)
        if (p->uses[g->first_use + i].first && is_pinned(r, &p->uses[g->first_use + i]))
            residency_unpin(r, p->uses[g->first_use + i].id);
}

/* Pins what the group reads and puts the addresses into its ops. */
static int pin(const struct program *p, const struct group *g, struct residency *r, struct op *ops,
               struct err *err)
{
    for (size_t i = 0; i < g->n_uses; i++) {
        const struct use *u = &p->uses[g->first_use + i];
        struct tensor *t = &ops[u->node].src[u->src];
        const void *data;
        int rc;

        *t = p->nodes[u->node].op.src[u->src];
        if (!is_pinned(r, u))
            continue;
        rc = residency_pin(r, u->id, &data, err);
        if (rc < 0) {
            unpin(p, g, i, r);
            return rc;
        }
        if (!u->first)
            residency_unpin(r, u->id); /* held by the first use */
        t->data = (char *)(uintptr_t)data + p->nodes[u->node].src[u->src].offset;
        if (residency_stride(r, u->id))
            t->stride[2] = residency_stride(r, u->id);
    }
    return 0;
}

/* A table of which only the batch's rows are there: row i is that of token i. */
static int fetch_rows(const struct program *p, const struct group *g, struct residency *r,
                      struct op *ops, struct op_run *run, struct err *err)
{
    for (size_t i = 0; i < g->n_uses; i++) {
        const struct use *u = &p->uses[g->first_use + i];
        struct tensor *t = &ops[u->node].src[u->src];
        const void *rows;
        int rc;

        if (!residency_is_by_row(r, u->id))
            continue;
        rc = residency_rows(r, u->id, run->tokens, run->rows, &rows, err);
        if (rc < 0)
            return rc;
        t->data = (char *)(uintptr_t)rows + p->nodes[u->node].src[u->src].offset;
        t->n[1] = run->rows;
        run->tokens = p->counting;
    }
    return 0;
}

static int check(const struct binding *b, size_t from, size_t to, struct err *err)
{
    for (size_t i = from; i < to; i++) {
        int r = op_check(&b->ops[i], err);

        if (r < 0)
            return r;
    }
    return 0;
}

/* From here on the batch is the rows whose logits are wanted; a router may ask for their tokens. */
static void keep_wanted(struct program *p, struct op_run *run)
{
    for (size_t i = 0; i < run->n_out; i++)
        p->wanted[i] = run->tokens[run->rows_out[i]];
    run->tokens = p->wanted;
    run->rows = run->n_out;
}

static int run_group(struct program *p, const struct program_place *place, struct binding *b,
                     const struct group *g, size_t to, const struct op_run *run, struct err *err)
{
    struct op_run mine = *run;
    bool decode = run->rows == 1;
    int r = pin(p, g, place->residency, b->ops, err);

    if (r < 0)
        return r;
    if (g->out)
        keep_wanted(p, &mine);
    r = fetch_rows(p, g, place->residency, b->ops, &mine, err);
    if (r >= 0 && !b->checked)
        r = check(b, g->from, to, err);
    if (r >= 0 && program_has_pieces(p, g, place->residency))
        r = program_run_pieces(p, place, b->ops, g->from, to, &mine, decode, err);
    else if (r >= 0 && residency_streams(place->residency))
        r = program_run_looking(place, b->ops, g->from, to, &mine, err);
    else if (r >= 0) {
        r = place->ops->run(place->be, b->ops + g->from, to - g->from, &mine, place->scratch, err);
        if (r >= 0)
            program_note_choices(p, place, b->ops, g->from, to, &mine, decode);
    }
    unpin(p, g, g->n_uses, place->residency);
    return r;
}

int program_run(struct program *p, const struct program_place *place, const struct op_run *run,
                const float **ret_logits, struct err *err)
{
    struct binding *b;
    size_t n_ops = run->n_out ? p->n_nodes : p->n_state_ops;

    thread_assert(THREAD_ENGINE);
    assert(run->rows && run->rows <= p->max_rows && run->n_out <= p->max_out);
    b = binding_of(p, place, run);
    for (size_t i = 0; i < p->n_groups && p->groups[i].from < n_ops; i++) {
        const struct group *g = &p->groups[i];
        int r;

        if (place->tick)
            place->tick(place->tick_arg);
        r = residency_between(place->residency, err);
        if (r < 0)
            return r;
        if (run->cancel && *run->cancel)
            return err_set(err, ERR_CANCELLED, "cancelled before layer %d",
                           p->nodes[g->from].op.layer);
        r = run_group(p, place, b, g, MIN(g->to, n_ops), run, err);
        if (r < 0)
            return r;
    }
    b->checked = b->checked || n_ops == p->n_nodes;
    *ret_logits = run->n_out ? value_data(p, b, p->output) : NULL;
    return 0;
}
