/* From a list of ops to a program: places in the arena, groups, what the device can.  See graph.h. */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/graph/graph_priv.h"

#define PLACE_ALIGN 64

/* Interval of the arena that is in use while ops run. */
struct busy {
    size_t at, size;
    graph_value owner;
};

struct arena {
    struct busy *list; /* sorted by at */
    size_t n, cap;
    size_t high; /* most that was ever in use */
};

/* The lowest gap that holds size bytes. */
static size_t arena_take(struct arena *a, size_t size, graph_value owner)
{
    size_t at = 0, i = 0;

    while (i < a->n && a->list[i].at - at < size) {
        at = a->list[i].at + a->list[i].size;
        i++;
    }
    ARRAY_GROW(a->list, a->n + 1, a->cap);
    memmove(&a->list[i + 1], &a->list[i], (a->n - i) * sizeof *a->list);
    a->list[i] = (struct busy){at, size, owner};
    a->n++;
    a->high = MAX(a->high, at + size);
    return at;
}

static struct busy *arena_find(struct arena *a, graph_value owner)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->list[i].owner == owner)
            return &a->list[i];
    return NULL;
}

static void arena_give(struct arena *a, graph_value owner)
{
    struct busy *b = arena_find(a, owner);
    size_t i = (size_t)(b - a->list);

    memmove(b, b + 1, (a->n - i - 1) * sizeof *b);
    a->n--;
}

/*
 * The index of the op that reads each value last; the output is read after all,
 * and what experts were chosen when their layer has run (program_note_choices).
 */
static size_t *last_reads(const struct program *p)
{
    size_t *last = XNEW_ARRAY(size_t, p->n_values);

    for (size_t i = 0; i < p->n_nodes; i++) {
        for (int d = 0; d < OP_MAX_DST; d++)
            if (p->nodes[i].dst[d].kind == REF_VALUE)
                last[p->nodes[i].dst[d].index] = i;
        for (int s = 0; s < OP_MAX_SRC; s++)
            if (p->nodes[i].src[s].kind == REF_VALUE)
                last[p->nodes[i].src[s].index] = i;
    }
    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct ref *ids = &p->nodes[i].src[MOE_IDS];
        size_t to = i;

        if (p->nodes[i].op.kind != OP_MOE || ids->kind != REF_VALUE)
            continue;
        while (to + 1 < p->n_nodes && p->nodes[to + 1].op.layer == p->nodes[i].op.layer)
            to++;
        last[ids->index] = MAX(last[ids->index], to);
    }
    last[p->output] = p->n_nodes;
    return last;
}

/* A sum may take the place of a term that nobody reads again. */
static bool take_over(const struct program *p, struct arena *a, size_t i, const size_t *last,
                      graph_value v)
{
    const struct node *n = &p->nodes[i];

    if (n->op.kind != OP_ADD)
        return false;
    for (int s = 0; s < 2; s++) {
        graph_value from = n->src[s].index;

        if (last[from] == i && p->values[from].out == p->values[v].out) {
            arena_find(a, from)->owner = v;
            p->places[v] = p->places[from];
            return true;
        }
    }
    return false;
}

static void place_values(struct program *p)
{
    size_t *last = last_reads(p);
    bool *placed = XNEW_ARRAY(bool, p->n_values);
    struct arena arenas[2] = {{0}}; /* rows of the batch, wanted rows */

    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct node *n = &p->nodes[i];

        for (int d = 0; d < OP_MAX_DST; d++) {
            graph_value v = n->dst[d].index;
            struct arena *a;

            if (n->dst[d].kind != REF_VALUE || placed[v])
                continue;
            placed[v] = true;
            a = &arenas[p->values[v].out];
            if (take_over(p, a, i, last, v))
                continue;
            p->places[v].size =
                (p->values[v].row_bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
            p->places[v].at = arena_take(a, p->places[v].size, v);
        }
        for (graph_value v = 0; v < p->n_values; v++)
            if (last[v] == i && arena_find(&arenas[p->values[v].out], v))
                arena_give(&arenas[p->values[v].out], v);
    }
    p->batch_row_bytes = arenas[0].high;
    p->out_row_bytes = arenas[1].high;
    free(arenas[0].list);
    free(arenas[1].list);
    free(placed);
    free(last);
}

/* Ops after the first ROWS have the wanted rows; ROWS itself begins the new group. */
static bool is_out(const struct program *p, const struct node *n)
{
    return n->dst[0].kind == REF_VALUE && p->values[n->dst[0].index].out;
}

bool node_keeps(const struct node *n)
{
    if (n->op.kind == OP_KV_STORE)
        return true;
    for (int s = 0; s < OP_MAX_SRC; s++)
        if (n->src[s].kind == REF_CONV || n->src[s].kind == REF_STATE)
            return true;
    return false;
}

/* Does the op read or write the value? */
static bool touches(const struct node *n, graph_value v)
{
    for (int d = 0; d < OP_MAX_DST; d++)
        if (n->dst[d].kind == REF_VALUE && n->dst[d].index == v)
            return true;
    for (int s = 0; s < OP_MAX_SRC; s++)
        if (n->src[s].kind == REF_VALUE && n->src[s].index == v)
            return true;
    return false;
}

/*
 * A mixture waits as long as it may: what stands between it and the first op
 * that wants its sum (a shared expert) can run while its experts are read.
 */
static void delay_mixtures(struct program *p)
{
    for (size_t i = p->n_nodes; i-- > 0;) {
        struct node moe = p->nodes[i];
        size_t to = i;

        if (moe.op.kind != OP_MOE || moe.op.p.moe.n_expert == 1)
            continue;
        while (to + 1 < p->n_nodes && p->nodes[to + 1].op.layer == moe.op.layer &&
               p->nodes[to + 1].op.kind != OP_ROWS && !touches(&p->nodes[to + 1], moe.dst[0].index))
            to++;
        memmove(&p->nodes[i], &p->nodes[i + 1], (to - i) * sizeof moe);
        p->nodes[to] = moe;
    }
}

static void cut_groups(struct program *p)
{
    size_t cap_groups = 0;

    for (size_t i = 0; i < p->n_nodes; i++) {
        struct group *g = p->n_groups ? &p->groups[p->n_groups - 1] : NULL;

        if (!g || is_out(p, &p->nodes[i]) != g->out ||
            p->nodes[i].op.layer != p->nodes[g->from].op.layer) {
            ARRAY_GROW(p->groups, p->n_groups + 1, cap_groups);
            g = &p->groups[p->n_groups++];
            *g = (struct group){.from = i, .out = is_out(p, &p->nodes[i])};
        }
        g->to = i + 1;
        if (node_keeps(&p->nodes[i]))
            p->n_state_ops = i + 1;
    }
}

static void list_uses(struct program *p)
{
    size_t cap_uses = 0;

    for (size_t k = 0; k < p->n_groups; k++) {
        struct group *g = &p->groups[k];

        g->first_use = p->n_uses;
        for (size_t i = g->from; i < g->to; i++)
            for (int s = 0; s < OP_MAX_SRC; s++) {
                struct use u = {.node = (uint32_t)i, .src = (uint8_t)s, .first = true};

                if (p->nodes[i].src[s].kind != REF_WEIGHT)
                    continue;
                u.id = p->nodes[i].src[s].index;
                for (size_t j = g->first_use; j < p->n_uses; j++)
                    u.first &= p->uses[j].id != u.id;
                ARRAY_GROW(p->uses, p->n_uses + 1, cap_uses);
                p->uses[p->n_uses++] = u;
            }
        g->n_uses = p->n_uses - g->first_use;
    }
}

static struct tensor cache_shape(const struct sequence_layout *l, const struct ref *r)
{
    switch (r->kind) {
    case REF_K: return sequence_shape_k(l, r->index);
    case REF_V: return sequence_shape_v(l, r->index);
    case REF_GROUPS: return sequence_shape_groups(l, r->index);
    case REF_INDEX: return sequence_shape_index(l, r->index);
    case REF_CONV: return sequence_shape_conv(l, r->index);
    default: return sequence_shape_state(l, r->index);
    }
}

static void shape_caches(struct program *p, const struct sequence_layout *l)
{
    for (size_t i = 0; i < p->n_nodes; i++)
        for (int s = 0; s < OP_MAX_SRC; s++) {
            const struct ref *r = &p->nodes[i].src[s];

            if (r->kind >= REF_K)
                p->nodes[i].op.src[s] = cache_shape(l, r);
        }
}

/* The op as it will be for a number of rows, without data. */
static struct op shaped(const struct program *p, size_t i, size_t rows)
{
    const struct node *n = &p->nodes[i];
    struct op op = n->op;

    for (int d = 0; d < OP_MAX_DST; d++)
        if (n->dst[d].kind == REF_VALUE)
            op.dst[d] = value_tensor(&p->values[n->dst[d].index], rows, NULL);
    for (int s = 0; s < OP_MAX_SRC; s++)
        if (n->src[s].kind == REF_VALUE)
            op.src[s] = value_tensor(&p->values[n->src[s].index], rows, NULL);
    return op;
}

static const char *weight_format(const struct node *n)
{
    for (int s = 0; s < OP_MAX_SRC; s++)
        if (n->src[s].kind == REF_WEIGHT || n->src[s].kind == REF_K || n->src[s].kind == REF_V)
            return n->op.src[s].fmt->name;
    return "f32";
}

/* Byte by byte: a difference in padding only costs a second question. */
static bool same_bytes(const void *a, const void *b, size_t n)
{
    const unsigned char *x = a, *y = b;

    for (size_t i = 0; i < n; i++)
        if (x[i] != y[i])
            return false;
    return true;
}

static bool same_but_layer(const struct op *a, const struct op *b)
{
    return a->kind == b->kind && same_bytes(&a->p, &b->p, sizeof a->p) &&
           same_bytes(a->dst, b->dst, sizeof a->dst) && same_bytes(a->src, b->src, sizeof a->src);
}

/* Layers repeat: has an op of the same shape been asked about already? */
static bool seen_before(const struct program *p, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (same_but_layer(&p->nodes[i].op, &p->nodes[j].op))
            return true;
    return false;
}

/* Asks the device about every op that differs, at every number of rows: scratch need not grow with rows. */
static int ask_device(struct program *p, const struct backend_ops *ops, struct backend *be,
                      struct err *err)
{
    for (size_t i = 0; i < p->n_nodes; i++) {
        size_t most = is_out(p, &p->nodes[i]) ? p->max_out : p->max_rows;

        if (seen_before(p, i))
            continue;
        for (size_t rows = 1; rows <= most; rows++) {
            struct op op = shaped(p, i, rows);
            size_t bytes;

            if (rows == 1 && !ops->can(be, &op))
                return err_set(err, ERR_UNSUPPORTED, "%s cannot run %s with format %s (layer %d)",
                               ops->name, op_name(op.kind), weight_format(&p->nodes[i]), op.layer);
            bytes = ops->scratch_bytes(be, &op, rows);
            p->scratch_bytes = MAX(p->scratch_bytes, bytes);
        }
    }
    return 0;
}

int graph_compile(const struct graph *g, const struct program_options *opt,
                  const struct backend_ops *ops, struct backend *be, struct program **ret,
                  struct err *err)
{
    struct program *p = XNEW(struct program);
    int r;

    assert(g->output != GRAPH_NONE && opt->max_rows && opt->max_out);
    p->nodes = xmemdup(g->nodes, g->n_nodes * sizeof *g->nodes);
    p->n_nodes = g->n_nodes;
    p->values = xmemdup(g->values, g->n_values * sizeof *g->values);
    p->n_values = g->n_values;
    p->places = XNEW_ARRAY(struct place, g->n_values);
    p->output = g->output;
    p->max_rows = opt->max_rows;
    p->max_out = opt->max_out;
    p->counting = XNEW_ARRAY(int32_t, opt->max_rows);
    for (size_t i = 0; i < opt->max_rows; i++)
        p->counting[i] = (int32_t)i;
    p->wanted = XNEW_ARRAY(int32_t, opt->max_out);
    shape_caches(p, opt->layout);
    delay_mixtures(p);
    place_values(p);
    cut_groups(p);
    list_uses(p);
    r = ask_device(p, ops, be, err);
    if (r < 0)
        program_destroy(p);
    else
        *ret = p;
    return r;
}

void program_destroy(struct program *p)
{
    if (!p)
        return;
    for (int i = 0; i < N_BINDINGS; i++)
        free(p->bindings[i].ops);
    free(p->nodes);
    free(p->values);
    free(p->places);
    free(p->groups);
    free(p->uses);
    free(p->counting);
    free(p->wanted);
    free(p);
}

size_t program_arena_bytes(const struct program *p)
{
    return p->batch_row_bytes * p->max_rows + p->out_row_bytes * p->max_out;
}

size_t program_scratch_bytes(const struct program *p)
{
    return p->scratch_bytes;
}

size_t program_n_ops(const struct program *p)
{
    return p->n_nodes;
}

size_t program_row_bytes(const struct program *p)
{
    size_t bytes = 0;

    for (size_t i = 0; i < p->n_nodes; i++) {
        const struct node *n = &p->nodes[i];

        if (n->op.kind == OP_MATMUL || n->op.kind == OP_MOE || n->op.kind == OP_ATTENTION ||
            n->op.kind == OP_SPARSE)
            continue;
        for (int d = 0; d < OP_MAX_DST; d++)
            if (n->dst[d].kind == REF_VALUE)
                bytes += p->values[n->dst[d].index].row_bytes;
        for (int s = 0; s < OP_MAX_SRC; s++)
            if (n->src[s].kind == REF_VALUE)
                bytes += p->values[n->src[s].index].row_bytes;
    }
    return bytes;
}

size_t program_memory_bytes(const struct program *p)
{
    return sizeof *p + p->n_nodes * (sizeof *p->nodes + N_BINDINGS * sizeof(struct op)) +
           p->n_values * (sizeof *p->values + sizeof *p->places) + p->n_groups * sizeof *p->groups +
           p->n_uses * sizeof *p->uses + p->max_rows * sizeof *p->counting +
           p->max_out * sizeof *p->wanted;
}
