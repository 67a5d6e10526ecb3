/* What a row of a batch costs: bytes by format, for rates to be put to them.  See model.h. */

#include <stdlib.h>

#include "daemon/model/model_priv.h"

/* The matrix that gives logits: the table itself where the file has no other. */
static const struct graph_weight *head_of(const struct model *m)
{
    const struct graph_weight *w = model_weight(m, -1, TENSOR_OUTPUT, PART_WEIGHT);

    return w->t.fmt ? w : model_weight(m, -1, TENSOR_TOKEN_EMBD, PART_WEIGHT);
}

static void add_attention(const struct model *m, const struct format *kv, struct model_work *w)
{
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct hparams_layer *l = &m->hp.layers[i];
        double bytes;

        if (!(l->kind & LAYER_ATTENTION))
            continue;
        bytes = (double)model_position_bytes(m, i, kv);
        if (l->kind & LAYER_WINDOW)
            w->kv_window_bytes += bytes;
        else
            w->kv_bytes += bytes;
        w->kv_rows = MAX(w->kv_rows, l->n_kv_heads ? l->n_heads / l->n_kv_heads : 1);
    }
    w->window = m->hp.n_swa;
}

static void add_weights(const struct model *m, const struct graph *g, struct model_work *w)
{
    struct graph_reading *readings = XNEW_ARRAY(struct graph_reading, m->n_bound);
    extent_id head = head_of(m)->id;

    graph_readings(g, m->n_bound, readings);
    for (size_t i = 0; i < m->n_bound; i++) {
        enum format_id f = format_id_of(m->bound[i]->fmt);
        double bytes = (double)m->bound[i]->bytes;

        if (i == head) {
            w->head = f;
            w->head_bytes = bytes;
        } else if (readings[i].n_experts) {
            w->experts[f] += bytes;
        } else if (!readings[i].by_row) {
            w->dense[f] += bytes;
        }
    }
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
    add_weights(m, g, &w);
    graph_destroy(g);
    *ret = w;
    return 0;
}
