/* Mixtures of experts (Shazeer et al. 2017, arXiv 1701.06538).  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

graph_value blk_moe(struct build *b, int layer, graph_value x, const struct blk_moe *opt)
{
    struct graph_moe moe = {
        .n_expert = b->hp->n_expert,
        .n_used = b->hp->n_expert_used,
        .gating = OP_GATING_SOFTMAX,
        .normalise = opt->normalise,
        .scale = b->hp->expert_scale,
        .act = OP_ACT_SILU,
        .router = model_weight(b->m, layer, TENSOR_FFN_GATE_INP, PART_WEIGHT),
        .gate = model_weight(b->m, layer, TENSOR_FFN_GATE_EXPS, PART_WEIGHT),
        .up = model_weight(b->m, layer, TENSOR_FFN_UP_EXPS, PART_WEIGHT),
        .down = model_weight(b->m, layer, TENSOR_FFN_DOWN_EXPS, PART_WEIGHT),
    };

    return graph_moe(b->g, x, &moe);
}

/* A mixture of one: its weight is the sigmoid of the only logit. */
graph_value blk_shared_expert(struct build *b, int layer, graph_value x)
{
    struct graph_moe moe = {
        .n_expert = 1,
        .n_used = 1,
        .gating = OP_GATING_SIGMOID,
        .scale = 1.0f,
        .act = OP_ACT_SILU,
        .router = model_weight(b->m, layer, TENSOR_FFN_GATE_INP_SHEXP, PART_WEIGHT),
        .gate = model_weight(b->m, layer, TENSOR_FFN_GATE_SHEXP, PART_WEIGHT),
        .up = model_weight(b->m, layer, TENSOR_FFN_UP_SHEXP, PART_WEIGHT),
        .down = model_weight(b->m, layer, TENSOR_FFN_DOWN_SHEXP, PART_WEIGHT),
    };

    return graph_moe(b->g, x, &moe);
}
