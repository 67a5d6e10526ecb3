/* The two parts of a layer of RWKV-7.  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

#define GROUP_EPS 64e-5f /* of the norm of each head, whatever the file says of the others */

/* Inputs in the order of their shares. */
enum { IN_R, IN_W, IN_K, IN_V, IN_A, IN_G, IN_COUNT };

/* second(act(first x)) + base, by two small matrices. */
static graph_value squeezed(struct build *b, int layer, graph_value x, enum tensor_name first,
                            enum tensor_name second, const struct graph_weight *base)
{
    x = graph_matmul1(b->g, x, blk_weight(b, layer, first), NULL);
    if (first == TENSOR_MIX_W1)
        x = graph_softcap(b->g, x, 1.0f); /* tanh */
    if (first == TENSOR_MIX_G1)
        x = graph_glu(b->g, OP_ACT_SIGMOID, x, GRAPH_NONE);
    return graph_matmul1(b->g, x, blk_weight(b, layer, second), base);
}

/* Values, mixed with those of the first layer in all others. */
static graph_value values(struct build *b, int layer, graph_value x)
{
    graph_value v = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_MIX_V), NULL), share;

    if (layer == 0) {
        b->v_first = v;
        return v;
    }
    share =
        squeezed(b, layer, x, TENSOR_MIX_V1, TENSOR_MIX_V2, blk_weight(b, layer, TENSOR_MIX_V0));
    share = graph_glu(b->g, OP_ACT_SIGMOID, share, GRAPH_NONE);
    return graph_lerp(b->g, v, b->v_first, share);
}

graph_value blk_time_mix(struct build *b, int layer, graph_value x)
{
    const struct hparams *hp = b->hp;
    struct graph_weight shares = graph_weight_flat(blk_weight(b, layer, TENSOR_MIX), hp->n_embd);
    struct graph_wkv w = {.remove = blk_weight(b, layer, TENSOR_MIX_K_K),
                          .write = blk_weight(b, layer, TENSOR_MIX_K_A),
                          .bonus = blk_weight(b, layer, TENSOR_MIX_R_K),
                          .n_heads = hp->ssm_rank,
                          .head_dim = hp->ssm_state};
    graph_value before = graph_shift(b->g, x, 0), in[IN_COUNT], gate, bonus, y;

    for (size_t i = 0; i < IN_COUNT; i++) {
        struct graph_weight share = graph_weight_rows(&shares, i, 1);

        in[i] = graph_lerp_by(b->g, x, before, &share);
    }
    w.r = graph_matmul1(b->g, in[IN_R], blk_weight(b, layer, TENSOR_MIX_R), NULL);
    w.k = graph_matmul1(b->g, in[IN_K], blk_weight(b, layer, TENSOR_MIX_K), NULL);
    w.v = values(b, layer, in[IN_V]);
    w.decay = squeezed(b, layer, in[IN_W], TENSOR_MIX_W1, TENSOR_MIX_W2,
                       blk_weight(b, layer, TENSOR_MIX_W0));
    w.rate = squeezed(b, layer, in[IN_A], TENSOR_MIX_A1, TENSOR_MIX_A2,
                      blk_weight(b, layer, TENSOR_MIX_A0));
    y = graph_wkv(b->g, &w, &bonus);
    y = graph_layernorm(b->g, y, blk_weight(b, layer, TENSOR_MIX_NORM),
                        blk_bias(b, layer, TENSOR_MIX_NORM), GROUP_EPS, hp->ssm_state);
    y = graph_add(b->g, y, bonus);
    gate = squeezed(b, layer, in[IN_G], TENSOR_MIX_G1, TENSOR_MIX_G2, NULL);
    y = graph_glu(b->g, OP_ACT_NONE, gate, y);
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_MIX_OUT), NULL);
}

graph_value blk_channel_mix(struct build *b, int layer, graph_value x)
{
    graph_value before = graph_shift(b->g, x, b->hp->n_embd);

    x = graph_lerp_by(b->g, blk_last(b, layer, x), before,
                      blk_weight(b, layer, TENSOR_CHANNEL_MIX));
    x = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_CHANNEL_UP), NULL);
    x = graph_glu(b->g, OP_ACT_RELU2, x, GRAPH_NONE);
    return graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_CHANNEL_DOWN), NULL);
}
