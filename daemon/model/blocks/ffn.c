/* The dense feed-forward part: SwiGLU (Shazeer 2020, arXiv 2002.05202).  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

static graph_value swiglu(struct build *b, int layer, graph_value x, enum tensor_name gate,
                          enum tensor_name up, enum tensor_name down)
{
    const struct graph_weight *w[2], *bias[2];
    graph_value gate_up[2], y;

    w[0] = model_weight(b->m, layer, gate, PART_WEIGHT);
    w[1] = model_weight(b->m, layer, up, PART_WEIGHT);
    bias[0] = model_weight(b->m, layer, gate, PART_BIAS);
    bias[1] = model_weight(b->m, layer, up, PART_BIAS);
    graph_matmul(b->g, x, 2, w, bias, gate_up);
    y = graph_glu(b->g, OP_ACT_SILU, gate_up[0], gate_up[1]);
    return graph_matmul1(b->g, y, model_weight(b->m, layer, down, PART_WEIGHT),
                         model_weight(b->m, layer, down, PART_BIAS));
}

graph_value blk_swiglu(struct build *b, int layer, graph_value x)
{
    return swiglu(b, layer, x, TENSOR_FFN_GATE, TENSOR_FFN_UP, TENSOR_FFN_DOWN);
}

graph_value blk_swiglu_shared(struct build *b, int layer, graph_value x)
{
    return swiglu(b, layer, x, TENSOR_FFN_GATE_SHEXP, TENSOR_FFN_UP_SHEXP, TENSOR_FFN_DOWN_SHEXP);
}
