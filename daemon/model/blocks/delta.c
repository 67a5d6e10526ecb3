/* Layers of the gated delta rule.  See blocks.h. */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/* Rates and steps of each head, by two matrices or one that has them key head by key head. */
static void rates_and_steps(struct build *b, int layer, graph_value x, bool in_one,
                            graph_value ret[2])
{
    size_t n = b->hp->ssm_rank / b->hp->ssm_groups;

    if (in_one) {
        graph_value ba = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_SSM_BA), NULL);

        ret[0] = graph_slice(b->g, ba, 0, n, 2 * n);
        ret[1] = graph_slice(b->g, ba, n, n, 2 * n);
        return;
    }
    graph_matmul(b->g, x, 2,
                 (const struct graph_weight *[]){blk_weight(b, layer, TENSOR_SSM_BETA),
                                                 blk_weight(b, layer, TENSOR_SSM_ALPHA)},
                 NULL, ret);
}

/* Unit length of each head but for a factor of sqrt(n), which the rule takes out. */
static graph_value unit(struct build *b, graph_value x)
{
    uint32_t n = b->hp->ssm_state;

    return graph_rmsnorm(b->g, x, NULL, b->hp->rms_eps / (float)n, n);
}

graph_value blk_delta(struct build *b, int layer, graph_value x, const struct blk_delta *opt)
{
    const struct hparams *hp = b->hp;
    size_t keys = (size_t)hp->ssm_state * hp->ssm_groups;
    struct graph_delta d = {.p = {.n_heads = hp->ssm_rank,
                                  .n_k_heads = hp->ssm_groups,
                                  .adjacent = opt->adjacent,
                                  .k_dim = hp->ssm_state,
                                  .v_dim = hp->ssm_state,
                                  .q_scale = 1.0f / (float)hp->ssm_state,
                                  .k_scale = 1.0f / sqrtf((float)hp->ssm_state)}};
    struct graph_conv c = {.taps = blk_weight(b, layer, TENSOR_SSM_CONV1D), .silu = true};
    graph_value qkvz[2], bs[2], qkv[3], y;

    graph_matmul(b->g, x, 2,
                 (const struct graph_weight *[]){blk_weight(b, layer, TENSOR_ATTN_QKV),
                                                 blk_weight(b, layer, TENSOR_ATTN_GATE)},
                 NULL, qkvz);
    rates_and_steps(b, layer, x, opt->adjacent, bs);
    graph_conv(b->g, qkvz[0], &c, 3, (const size_t[]){keys, keys, hp->ssm_inner}, qkv);
    graph_softplus(b->g, bs[1], blk_bias(b, layer, TENSOR_SSM_DT), blk_bare(b, layer, TENSOR_SSM_A),
                   &d.decay);
    d.q = unit(b, qkv[0]);
    d.k = unit(b, qkv[1]);
    d.v = qkv[2];
    d.rate = bs[0];
    y = blk_last(b, layer, graph_delta(b->g, &d));
    y = graph_rmsnorm(b->g, y, blk_weight(b, layer, TENSOR_SSM_NORM), hp->rms_eps, hp->ssm_state);
    y = blk_gate(b, OP_ACT_SILU, qkvz[1], y);
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_SSM_OUT), NULL);
}

graph_value blk_delta_or_attention(struct build *b, int layer, graph_value x, bool adjacent)
{
    if (b->hp->layers[layer].kind & LAYER_RECURRENT)
        return blk_delta(b, layer, x, &(struct blk_delta){.adjacent = adjacent});
    return blk_attention(b, layer, x, &(struct blk_attention){.qk_norm = true, .gated = true});
}

graph_value blk_delta_mixture(struct build *b, int layer, graph_value x, bool adjacent)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, layer), experts;

    x = blk_add(b, x, blk_delta_or_attention(b, layer, h, adjacent));
    h = blk_rmsnorm(b, x, TENSOR_ATTN_POST_NORM, layer);
    experts = blk_moe(b, layer, h, &(struct blk_moe){.normalise = true});
    return blk_add(b, x, blk_add(b, experts, blk_shared_expert(b, layer, h)));
}

/* Two small matrices in a row. */
static graph_value halves(struct build *b, int layer, graph_value x, enum tensor_name first,
                          enum tensor_name second)
{
    x = graph_matmul1(b->g, x, blk_weight(b, layer, first), NULL);
    return graph_matmul1(b->g, x, blk_weight(b, layer, second), NULL);
}

/* Queries, keys and values, each with a convolution of its own. */
static void convolved(struct build *b, int layer, graph_value x, graph_value ret[3])
{
    static const enum tensor_name names[3] = {TENSOR_ATTN_Q, TENSOR_ATTN_K, TENSOR_ATTN_V};
    static const enum tensor_name taps[3] = {TENSOR_SSM_CONV_Q, TENSOR_SSM_CONV_K,
                                             TENSOR_SSM_CONV_V};
    const struct graph_weight *w[3];
    size_t n = b->hp->ssm_inner;

    for (int i = 0; i < 3; i++)
        w[i] = blk_weight(b, layer, names[i]);
    graph_matmul(b->g, x, 3, w, NULL, ret);
    for (unsigned i = 0; i < 3; i++) {
        struct graph_weight t = graph_weight_flat(blk_weight(b, layer, taps[i]), b->hp->ssm_conv);
        struct graph_conv c = {.taps = &t, .silu = true, .column = i * b->hp->ssm_inner};

        graph_conv(b->g, ret[i], &c, 1, &n, &ret[i]);
    }
}

graph_value blk_kda(struct build *b, int layer, graph_value x)
{
    const struct hparams *hp = b->hp;
    struct graph_delta d = {.p = {.n_heads = hp->ssm_rank,
                                  .n_k_heads = hp->ssm_rank,
                                  .k_dim = hp->ssm_state,
                                  .v_dim = hp->ssm_state,
                                  .q_scale = 1.0f / (float)hp->ssm_state,
                                  .k_scale = 1.0f / sqrtf((float)hp->ssm_state)}};
    struct graph_weight a = graph_weight_flat(blk_bare(b, layer, TENSOR_SSM_A), hp->ssm_rank);
    graph_value qkv[3], f, gate, y;

    convolved(b, layer, x, qkv);
    f = halves(b, layer, x, TENSOR_SSM_F_A, TENSOR_SSM_F_B);
    gate = halves(b, layer, x, TENSOR_SSM_G_A, TENSOR_SSM_G_B);
    graph_softplus(b->g, f, blk_bias(b, layer, TENSOR_SSM_DT), &a, &d.decay);
    d.rate = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_SSM_BETA), NULL);
    d.q = unit(b, qkv[0]);
    d.k = unit(b, qkv[1]);
    d.v = qkv[2];
    y = blk_last(b, layer, graph_delta(b->g, &d));
    y = graph_rmsnorm(b->g, y, blk_weight(b, layer, TENSOR_SSM_NORM), hp->rms_eps, hp->ssm_state);
    y = blk_gate(b, OP_ACT_SIGMOID, gate, y);
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_ATTN_OUT), NULL);
}
