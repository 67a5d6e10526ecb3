/* Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245).  See blocks.h. */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/* Norms of q and k; some files of a family have the weights and others do not. */
static void norm_qk(struct build *b, int layer, graph_value qk[2], const struct blk_attention *opt)
{
    static const enum tensor_name names[2] = {TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM};
    size_t group = opt->norm_rows ? 0 : hparams_head_dim(b->hp, (size_t)layer);

    for (int i = 0; i < 2; i++) {
        const struct graph_weight *w = blk_weight(b, layer, names[i]);
        struct graph_weight flat;

        if (qk[i] != GRAPH_NONE && opt->norm_bare)
            qk[i] = graph_rmsnorm(b->g, qk[i], NULL, b->hp->rms_eps, group);
        if (!w->t.fmt || qk[i] == GRAPH_NONE)
            continue;
        /* A row of weights for each head is one for the whole row. */
        flat = graph_weight_flat(w, w->t.n[0] * w->t.n[1]);
        w = &flat;
        if (b->m->arch->layernorm)
            qk[i] = graph_layernorm(b->g, qk[i], w, blk_bias(b, layer, names[i]), b->hp->norm_eps,
                                    group);
        else
            qk[i] = graph_rmsnorm(b->g, qk[i], w, b->hp->rms_eps, group);
    }
}

/* q, k and v of x: of three tensors, or of three parts of one; k and v GRAPH_NONE in a layer without its own. */
static void project(struct build *b, int layer, graph_value x, graph_value ret[3])
{
    static const enum tensor_name names[3] = {TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V};
    const struct hparams_layer *y = &b->hp->layers[layer];
    size_t k_dim = hparams_head_dim(b->hp, (size_t)layer);
    const size_t width[3] = {y->n_heads * k_dim, y->n_kv_heads * k_dim,
                             y->n_kv_heads * (size_t)hparams_v_dim(b->hp, (size_t)layer)};
    const struct graph_weight *fused = blk_weight(b, layer, TENSOR_ATTN_QKV);
    const struct graph_weight *fused_bias = blk_bias(b, layer, TENSOR_ATTN_QKV);
    struct graph_weight parts[3], bias_parts[3];
    const struct graph_weight *w[3], *bias[3];
    unsigned n = y->kind & LAYER_SHARED ? 1 : 3;

    for (size_t i = 0, at = 0; i < 3; at += width[i++]) {
        ret[i] = GRAPH_NONE;
        w[i] = blk_weight(b, layer, names[i]);
        bias[i] = blk_bias(b, layer, names[i]);
        if (fused->t.fmt) {
            parts[i] = graph_weight_rows(fused, at, width[i]);
            w[i] = &parts[i];
        }
        if (fused_bias->t.fmt) {
            bias_parts[i] = graph_weight_columns(fused_bias, at, width[i]);
            bias[i] = &bias_parts[i];
        }
    }
    if (n == 3 && !w[2]->t.fmt)
        n = 2;
    graph_matmul(b->g, x, n, w, bias, ret);
    if (n == 2)
        ret[2] = ret[1];
}

static bool rotates(const struct build *b, int layer, const struct blk_attention *opt)
{
    if (opt->near_rope && !(b->hp->layers[layer].kind & LAYER_WINDOW))
        return false;
    return !opt->no_rope && !b->m->arch->no_rope;
}

static void rotate(struct build *b, int layer, graph_value x)
{
    bool window = b->hp->layers[layer].kind & LAYER_WINDOW;

    if (x != GRAPH_NONE)
        graph_rope(b->g, x, window ? b->rope_swa : b->rope,
                   b->hp->rope_halves ? OP_ROPE_NEOX : b->m->arch->rope,
                   window ? b->hp->n_rot_swa : b->hp->n_rot,
                   hparams_head_dim(b->hp, (size_t)layer));
}

/* The last layer before with keys and values of its own, and a window if this one has one. */
static unsigned owner_of(const struct hparams *hp, int layer)
{
    int i = layer - 1;

    while (i > 0 && (!(hp->layers[i].kind & LAYER_ATTENTION) ||
                     (hp->layers[i].kind ^ hp->layers[layer].kind) & LAYER_WINDOW))
        i--;
    return (unsigned)i;
}

static struct graph_attention shape_of(struct build *b, int layer, const struct blk_attention *opt)
{
    const struct hparams *hp = b->hp;
    const struct hparams_layer *y = &hp->layers[layer];
    struct graph_attention a = {.n_heads = y->n_heads,
                                .n_kv_heads = y->n_kv_heads,
                                .head_dim = hparams_head_dim(hp, (size_t)layer),
                                .v_dim = hparams_v_dim(hp, (size_t)layer),
                                .window = y->kind & LAYER_WINDOW ? hp->n_swa : 0,
                                .chunked = opt->chunked && y->kind & LAYER_WINDOW,
                                .soft_cap = hp->attn_soft_cap,
                                .non_causal = b->m->arch->encoder,
                                .sinks = blk_weight(b, layer, TENSOR_ATTN_SINKS)};

    a.scale = hp->attention_scale > 0.0f ? hp->attention_scale : 1.0f / sqrtf((float)a.head_dim);
    if (y->kind & LAYER_SHARED) {
        a.shares = true;
        a.shared = owner_of(hp, layer);
    }
    return a;
}

graph_value blk_attention(struct build *b, int layer, graph_value x,
                          const struct blk_attention *opt)
{
    struct graph_attention a = shape_of(b, layer, opt);
    graph_value qkv[3], gate = GRAPH_NONE, out;

    project(b, layer, x, qkv);
    if (opt->gated) {
        gate = graph_slice(b->g, qkv[0], a.head_dim, a.head_dim, 2 * (size_t)a.head_dim);
        qkv[0] = graph_slice(b->g, qkv[0], 0, a.head_dim, 2 * (size_t)a.head_dim);
    }
    if (opt->gate_apart)
        gate = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_ATTN_GATE), NULL);
    if (opt->v_norm && qkv[2] != GRAPH_NONE)
        qkv[2] = graph_rmsnorm(b->g, qkv[2], NULL, b->hp->rms_eps, a.v_dim);
    if (opt->qk_norm && !opt->norm_late)
        norm_qk(b, layer, qkv, opt);
    if (rotates(b, layer, opt)) {
        rotate(b, layer, qkv[0]);
        rotate(b, layer, qkv[1]);
    }
    if (opt->qk_norm && opt->norm_late)
        norm_qk(b, layer, qkv, opt);
    if (opt->temperature != 0.0f)
        qkv[0] = graph_temperature(b->g, qkv[0], opt->temperature, opt->step, opt->offset);
    if (!a.shares)
        graph_kv_store(b->g, qkv[1], qkv[2], a.n_kv_heads, a.head_dim, a.v_dim);
    out = blk_last(b, layer, graph_attention(b->g, qkv[0], &a));
    if (gate != GRAPH_NONE)
        out = blk_gate(b, OP_ACT_SIGMOID, gate, out);
    return graph_matmul1(b->g, out, blk_weight(b, layer, TENSOR_ATTN_OUT),
                         blk_bias(b, layer, TENSOR_ATTN_OUT));
}
