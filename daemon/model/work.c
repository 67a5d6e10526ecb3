/* What a row of a batch costs: bytes by format, for rates to be put to them.  See model.h. */

#include <stdlib.h>

#include "daemon/model/model_priv.h"

/* The matrix that gives logits: the table itself where the file has no other. */
static const struct graph_weight *head_of(const struct model *m)
{
    const struct graph_weight *w = model_weight(m, -1, TENSOR_OUTPUT, PART_WEIGHT);

    return w->t.fmt ? w : model_weight(m, -1, TENSOR_TOKEN_EMBD, PART_WEIGHT);
}

static void add_span(struct model_work *w, enum model_span_kind kind, double bytes, size_t reach,
                     size_t rows)
{
    struct model_span *s = &w->spans[kind];

    if (bytes <= 0)
        return;
    s->bytes += bytes;
    s->reach = reach;
    s->rows = MAX(s->rows, rows);
}

/*
 * A layer sees all of its past, a window of it, or what an indexer chooses by
 * keys of its own; one with keys of groups sees a window, and of the groups all
 * or the chosen.
 */
static void add_attention(const struct model *m, const struct format *kv, struct model_work *w)
{
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct hparams_layer *l = &m->hp.layers[i];
        bool groups = l->kind & LAYER_GROUPS;
        double bytes = (double)model_position_bytes(m, i, kv), share = 1;
        size_t rows = l->n_kv_heads ? l->n_heads / l->n_kv_heads : 1;

        if (!(l->kind & LAYER_ATTENTION))
            continue;
        if (l->kind & LAYER_WINDOW || groups)
            add_span(w, SPAN_WINDOW, bytes, m->hp.n_swa, rows);
        if (l->kind & LAYER_WINDOW && !groups)
            continue;
        if (groups)
            share = 1 / (double)MAX(l->group, 1U);
        if (l->indexer)
            add_span(w, SPAN_INDEX, share * (double)format_row_bytes(kv, m->hp.index_dim), 0,
                     m->hp.n_index_heads);
        if (m->hp.indexer && (l->indexer || !groups))
            add_span(w, SPAN_CHOSEN, share * bytes, (size_t)((double)m->hp.index_top_k / share),
                     rows);
        else
            add_span(w, SPAN_ALL, share * bytes, 0, rows);
    }
}

/* Layers with experts, by what their time depends on. */
static void add_mixtures(const struct model *m, const struct graph *g, struct model_work *w)
{
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct op *op = graph_find_op(g, (int)i, OP_MOE);
        struct gauge_mixture kind = {0};
        size_t k = 0;

        if (!op || op->p.moe.n_expert <= 1)
            continue;
        for (int part = 0; part < 3; part++)
            kind.formats[part] = format_id_of(op->src[3 + part].fmt);
        kind.width = op->src[3].n[0];
        kind.ff = op->src[3].n[1];
        kind.n_experts = op->p.moe.n_expert;
        kind.n_used = op->p.moe.n_used;
        kind.act = op->p.moe.act;
        kind.alone = op->p.moe.alone;
        while (k < w->n_mixtures && !gauge_mixture_same(&w->mixtures[k].kind, &kind))
            k++;
        k = MIN(k, (size_t)MODEL_WORK_MIXTURES - 1);
        if (k == w->n_mixtures)
            w->mixtures[w->n_mixtures++].kind = kind;
        w->mixtures[k].n_layers++;
        w->mixtures[k].n_wanted += graph_op_wanted(g, op);
    }
}

static void add_weights(const struct model *m, const struct graph *g, struct model_work *w)
{
    struct graph_reading *readings = XNEW_ARRAY(struct graph_reading, m->n_bound);
    extent_id head = head_of(m)->id;
    double slices = 0, sliced = 0;

    graph_readings(g, m->n_bound, readings);
    for (size_t i = 0; i < m->n_bound; i++) {
        enum format_id f = format_id_of(m->bound[i]->fmt);
        double bytes = (double)m->bound[i]->bytes;

        if (i == head) {
            w->head = f;
            w->head_bytes = bytes;
        } else if (readings[i].n_experts) {
            w->experts[f] += bytes;
            sliced += bytes;
            slices += readings[i].n_experts;
        } else if (!readings[i].by_row) {
            *(readings[i].wanted ? &w->wanted[f] : &w->dense[f]) += bytes;
        }
    }
    w->slice_bytes = slices > 0 ? sliced / slices : 0;
    free(readings);
}

int model_work(const struct model *m, const struct model_plan *p, const struct format *kv,
               const struct backend_ops *ops, struct backend *be, struct model_work *ret,
               struct err *err)
{
    struct model_work w = {.kv = kv ? kv : format_of(FORMAT_f16), .n_layers = m->hp.n_layers};
    struct model_options o = {.n_ctx = p->n_ctx, .n_batch = p->n_batch, .n_out = 1, .kv = w.kv};
    struct program *program = NULL;
    struct sizes s;
    struct graph *g;
    int r = model_sizes(m, &o, p->free_bytes, ops, be, &s, &program, err);

    if (r < 0)
        return r;
    w.n_ops = program_n_ops(program);
    w.row_bytes = (double)program_row_bytes(program);
    program_destroy(program);
    w.state_bytes = (double)s.account[ACCOUNT_STATE] / (1 + MODEL_CHECKPOINTS);
    w.n_experts = m->hp.n_expert;
    w.n_used = m->hp.n_expert_used;
    for (size_t i = 0; i < m->hp.n_layers && w.n_experts; i++)
        w.n_units += (m->hp.layers[i].kind & LAYER_MOE) != 0;
    add_attention(m, w.kv, &w);
    g = model_graph(m, p->n_ctx);
    add_mixtures(m, g, &w);
    add_weights(m, g, &w);
    graph_destroy(g);
    *ret = w;
    return 0;
}
