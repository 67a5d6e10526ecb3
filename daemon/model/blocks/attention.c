/* Grouped-query attention (Ainslie et al. 2023, arXiv 2305.13245).  See blocks.h. */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/* Norms of q and k; some files of a family have the weights and others do not. */
static void norm_qk(struct build *b, int layer, graph_value qk[2], bool rows)
{
    static const enum tensor_name names[2] = {TENSOR_ATTN_Q_NORM, TENSOR_ATTN_K_NORM};

    for (int i = 0; i < 2; i++) {
        const struct graph_weight *w = model_weight(b->m, layer, names[i], PART_WEIGHT);

        if (w->t.fmt)
            qk[i] = graph_rmsnorm(b->g, qk[i], w, b->hp->rms_eps, rows ? 0 : b->hp->head_dim);
    }
}

graph_value blk_attention(struct build *b, int layer, graph_value x,
                          const struct blk_attention *opt)
{
    static const enum tensor_name names[3] = {TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V};
    const struct hparams *hp = b->hp;
    const struct graph_weight *w[3], *bias[3];
    enum op_rope rope = b->m->arch->rope;
    struct graph_attention a = {.n_heads = hp->layers[layer].n_heads,
                                .n_kv_heads = hp->layers[layer].n_kv_heads,
                                .head_dim = hp->head_dim,
                                .v_dim = hp->v_dim,
                                .non_causal = b->m->arch->encoder};
    graph_value qkv[3], y;

    a.scale = hp->attention_scale > 0.0f ? hp->attention_scale : 1.0f / sqrtf((float)hp->head_dim);
    for (int i = 0; i < 3; i++) {
        w[i] = model_weight(b->m, layer, names[i], PART_WEIGHT);
        bias[i] = model_weight(b->m, layer, names[i], PART_BIAS);
    }
    graph_matmul(b->g, x, 3, w, bias, qkv);
    if (opt->qk_norm && !opt->norm_late)
        norm_qk(b, layer, qkv, opt->norm_rows);
    graph_rope(b->g, qkv[0], b->rope, rope, hp->n_rot, hp->head_dim);
    graph_rope(b->g, qkv[1], b->rope, rope, hp->n_rot, hp->head_dim);
    if (opt->qk_norm && opt->norm_late)
        norm_qk(b, layer, qkv, opt->norm_rows);
    graph_kv_store(b->g, qkv[1], qkv[2], a.n_kv_heads, hp->head_dim, hp->v_dim);
    y = graph_attention(b->g, qkv[0], &a);
    if (layer == (int)hp->n_layers - 1)
        y = graph_rows(b->g, y);
    return graph_matmul1(b->g, y, model_weight(b->m, layer, TENSOR_ATTN_OUT, PART_WEIGHT),
                         model_weight(b->m, layer, TENSOR_ATTN_OUT, PART_BIAS));
}
