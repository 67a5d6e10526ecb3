/* Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245).  See blocks.h. */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/* Norms of q and k; some files of a family have the weights and others do not. */
static void norm_qk(struct build *b, int layer, graph_value qk[2], bool rows)
{
    static const enum tensor_name names[2] = {TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM};
    size_t group = rows ? 0 : b->hp->head_dim;

    for (int i = 0; i < 2; i++) {
        const struct graph_weight *w = model_weight(b->m, layer, names[i], PART_WEIGHT);
        struct graph_weight flat = *w;

        if (!w->t.fmt)
            continue;
        /* A row of weights for each head is one for the whole row. */
        flat.t.n[0] *= w->t.n[1];
        flat.t.n[1] = 1;
        w = &flat;
        if (b->m->arch->layernorm)
            qk[i] = graph_layernorm(b->g, qk[i], w, model_weight(b->m, layer, names[i], PART_BIAS),
                                    b->hp->norm_eps, group);
        else
            qk[i] = graph_rmsnorm(b->g, qk[i], w, b->hp->rms_eps, group);
    }
}

/* q, k and v of x: of three tensors, or of three parts of one. */
static void project(struct build *b, int layer, graph_value x, graph_value ret[3])
{
    static const enum tensor_name names[3] = {TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V};
    const struct hparams_layer *y = &b->hp->layers[layer];
    const size_t width[3] = {(size_t)y->n_heads * b->hp->head_dim,
                             (size_t)y->n_kv_heads * b->hp->head_dim,
                             (size_t)y->n_kv_heads * b->hp->v_dim};
    const struct graph_weight *fused = model_weight(b->m, layer, TENSOR_ATTN_QKV, PART_WEIGHT);
    const struct graph_weight *fused_bias = model_weight(b->m, layer, TENSOR_ATTN_QKV, PART_BIAS);
    struct graph_weight parts[3], bias_parts[3];
    const struct graph_weight *w[3], *bias[3];

    for (size_t i = 0, at = 0; i < 3; at += width[i++]) {
        w[i] = model_weight(b->m, layer, names[i], PART_WEIGHT);
        bias[i] = model_weight(b->m, layer, names[i], PART_BIAS);
        if (!fused->t.fmt)
            continue;
        parts[i] = graph_weight_part(fused, at, width[i]);
        bias_parts[i] = graph_weight_part(fused_bias, at, width[i]);
        w[i] = &parts[i];
        bias[i] = &bias_parts[i];
    }
    graph_matmul(b->g, x, 3, w, bias, ret);
}

static void rotate(struct build *b, int layer, graph_value x)
{
    bool window = b->hp->layers[layer].kind & LAYER_WINDOW;

    graph_rope(b->g, x, window ? b->rope_swa : b->rope, b->m->arch->rope, b->hp->n_rot,
               b->hp->head_dim);
}

graph_value blk_attention(struct build *b, int layer, graph_value x,
                          const struct blk_attention *opt)
{
    const struct hparams *hp = b->hp;
    const struct hparams_layer *y = &hp->layers[layer];
    struct graph_attention a = {.n_heads = y->n_heads,
                                .n_kv_heads = y->n_kv_heads,
                                .head_dim = hp->head_dim,
                                .v_dim = hp->v_dim,
                                .window = y->kind & LAYER_WINDOW ? hp->n_swa : 0,
                                .soft_cap = hp->attn_soft_cap,
                                .non_causal = b->m->arch->encoder,
                                .sinks = model_weight(b->m, layer, TENSOR_ATTN_SINKS, PART_WEIGHT)};
    graph_value qkv[3], gate = GRAPH_NONE, out;

    a.scale = hp->attention_scale > 0.0f ? hp->attention_scale : 1.0f / sqrtf((float)hp->head_dim);
    project(b, layer, x, qkv);
    if (opt->gated) {
        gate = graph_slice(b->g, qkv[0], hp->head_dim, hp->head_dim, 2 * (size_t)hp->head_dim);
        qkv[0] = graph_slice(b->g, qkv[0], 0, hp->head_dim, 2 * (size_t)hp->head_dim);
    }
    if (opt->qk_norm && !opt->norm_late)
        norm_qk(b, layer, qkv, opt->norm_rows);
    if (!opt->no_rope && !b->m->arch->no_rope) {
        rotate(b, layer, qkv[0]);
        rotate(b, layer, qkv[1]);
    }
    if (opt->qk_norm && opt->norm_late)
        norm_qk(b, layer, qkv, opt->norm_rows);
    if (opt->temperature != 0.0f)
        qkv[0] = graph_temperature(b->g, qkv[0], opt->temperature, opt->step);
    graph_kv_store(b->g, qkv[1], qkv[2], a.n_kv_heads, hp->head_dim, hp->v_dim);
    out = blk_last(b, layer, graph_attention(b->g, qkv[0], &a));
    if (opt->gated)
        out = blk_gate(b, OP_ACT_SIGMOID, gate, out);
    return graph_matmul1(b->g, out, model_weight(b->m, layer, TENSOR_ATTN_OUT, PART_WEIGHT),
                         model_weight(b->m, layer, TENSOR_ATTN_OUT, PART_BIAS));
}
