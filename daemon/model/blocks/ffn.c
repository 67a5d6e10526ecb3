/* The dense feed-forward part: SwiGLU (Shazeer 2020, arXiv 2002.05202).  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

graph_value blk_swiglu(struct build *b, int layer, graph_value x)
{
    const struct graph_weight *w[2], *bias[2];
    graph_value gate_up[2], y;

    w[0] = model_weight(b->m, layer, TENSOR_FFN_GATE, PART_WEIGHT);
    w[1] = model_weight(b->m, layer, TENSOR_FFN_UP, PART_WEIGHT);
    bias[0] = model_weight(b->m, layer, TENSOR_FFN_GATE, PART_BIAS);
    bias[1] = model_weight(b->m, layer, TENSOR_FFN_UP, PART_BIAS);
    graph_matmul(b->g, x, 2, w, bias, gate_up);
    y = graph_glu(b->g, OP_ACT_SILU, gate_up[0], gate_up[1]);
    return graph_matmul1(b->g, y, model_weight(b->m, layer, TENSOR_FFN_DOWN, PART_WEIGHT),
                         model_weight(b->m, layer, TENSOR_FFN_DOWN, PART_BIAS));
}
