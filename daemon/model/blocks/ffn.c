/* The dense feed-forward part: gated (Shazeer 2020, arXiv 2002.05202) or plain.  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

/* gate and up, or parts of one: their results, the second GRAPH_NONE where there is no gate. */
static void gate_and_up(struct build *b, int layer, graph_value x, enum tensor_name gate,
                        enum tensor_name up, graph_value ret[2])
{
    const struct graph_weight *w[2], *bias[2];
    struct graph_weight halves[2];
    size_t n_ff = b->hp->layers[layer].n_ff;

    w[0] = blk_weight(b, layer, gate);
    w[1] = blk_weight(b, layer, up);
    bias[0] = blk_bias(b, layer, gate);
    bias[1] = blk_bias(b, layer, up);
    if (!w[0]->t.fmt && w[1]->t.n[1] == 2 * n_ff) {
        for (size_t i = 0; i < 2; i++)
            halves[i] = graph_weight_rows(w[1], i * n_ff, n_ff);
        w[0] = &halves[0];
        w[1] = &halves[1];
    }
    if (w[0]->t.fmt) {
        graph_matmul(b->g, x, 2, w, bias, ret);
        return;
    }
    ret[0] = graph_matmul1(b->g, x, w[1], bias[1]);
    ret[1] = GRAPH_NONE;
}

static graph_value ffn(struct build *b, int layer, graph_value x, enum op_act act, float limit,
                       enum tensor_name gate, enum tensor_name up, enum tensor_name down)
{
    graph_value parts[2], y;

    gate_and_up(b, layer, x, gate, up, parts);
    if (limit > 0.0f)
        y = graph_swiglu(b->g, limit, parts[0], parts[1]);
    else
        y = graph_glu(b->g, act, parts[0], parts[1]);
    return graph_matmul1(b->g, y, blk_weight(b, layer, down), blk_bias(b, layer, down));
}

graph_value blk_ffn(struct build *b, int layer, graph_value x, enum op_act act)
{
    return ffn(b, layer, x, act, 0.0f, TENSOR_FFN_GATE, TENSOR_FFN_UP, TENSOR_FFN_DOWN);
}

graph_value blk_ffn_above(struct build *b, int layer, graph_value x, enum op_act act, float s)
{
    graph_value parts[2];

    gate_and_up(b, layer, x, TENSOR_FFN_GATE, TENSOR_FFN_UP, parts);
    return graph_matmul1(b->g, graph_glu(b->g, act, graph_above(b->g, parts[0], s), parts[1]),
                         blk_weight(b, layer, TENSOR_FFN_DOWN), NULL);
}

graph_value blk_swiglu(struct build *b, int layer, graph_value x)
{
    return blk_ffn(b, layer, x, OP_ACT_SILU);
}

graph_value blk_ffn_shared(struct build *b, int layer, graph_value x, enum op_act act)
{
    return ffn(b, layer, x, act, b->hp->layers[layer].limit_shared, TENSOR_FFN_GATE_SHEXP,
               TENSOR_FFN_UP_SHEXP, TENSOR_FFN_DOWN_SHEXP);
}
