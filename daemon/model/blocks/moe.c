/* Mixtures of experts (Shazeer et al. 2017, arXiv 1701.06538).  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

static enum op_gating gating(const struct hparams *hp)
{
    switch ((enum expert_gating)hp->expert_gating) {
    case EXPERT_GATING_SIGMOID: return OP_GATING_SIGMOID;
    case EXPERT_GATING_SOFTMAX_CHOSEN: return OP_GATING_SOFTMAX_CHOSEN;
    case EXPERT_GATING_SQRT_SOFTPLUS: return OP_GATING_SQRT_SOFTPLUS;
    case EXPERT_GATING_SIGMOID_CHOSEN: return OP_GATING_SIGMOID_CHOSEN;
    case EXPERT_GATING_NONE:
    case EXPERT_GATING_SOFTMAX: break;
    }
    return OP_GATING_SOFTMAX;
}

/* The bias of the choice has an end to its name in some families, and none in others. */
static const struct graph_weight *choice_bias(struct build *b, int layer)
{
    const struct graph_weight *w = model_weight(b->m, layer, TENSOR_EXP_PROBS_B, PART_BIAS);

    return w->t.fmt ? w : model_weight(b->m, layer, TENSOR_EXP_PROBS_B, PART_BARE);
}

static const struct graph_weight *bias_of(struct build *b, int layer, enum tensor_name name)
{
    return model_weight(b->m, layer, name, PART_BIAS);
}

graph_value blk_mixture(struct build *b, int layer, graph_value x)
{
    graph_value y;

    if (!(b->hp->layers[layer].kind & LAYER_MOE))
        return blk_swiglu(b, layer, x);
    y = blk_moe(b, layer, x, &(struct blk_moe){.normalise = b->hp->expert_norm});
    return b->hp->n_ff_shexp ? blk_add(b, y, blk_swiglu_shared(b, layer, x)) : y;
}

graph_value blk_moe(struct build *b, int layer, graph_value x, const struct blk_moe *opt)
{
    struct graph_moe moe = {
        .n_expert = b->hp->n_expert,
        .n_used = b->hp->n_expert_used,
        .n_group = b->hp->n_group,
        .n_group_used = b->hp->n_group_used,
        .gating = gating(b->hp),
        .normalise = opt->normalise,
        .scale = b->hp->expert_scale,
        .act = opt->act,
        .limit = b->hp->layers[layer].limit,
        .ids = model_weight(b->m, layer, TENSOR_TOKEN_EXPERTS, PART_WEIGHT),
        .weigh_first = opt->weigh_first,
        .router = model_weight(b->m, layer, TENSOR_FFN_GATE_INP, PART_WEIGHT),
        .router_x = opt->router_x,
        .factor = model_weight(b->m, layer, TENSOR_FFN_DOWN_EXPS, PART_SCALE),
        .router_bias = bias_of(b, layer, TENSOR_FFN_GATE_INP),
        .bias = choice_bias(b, layer),
        .gate = model_weight(b->m, layer, TENSOR_FFN_GATE_EXPS, PART_WEIGHT),
        .up = model_weight(b->m, layer, TENSOR_FFN_UP_EXPS, PART_WEIGHT),
        .down = model_weight(b->m, layer, TENSOR_FFN_DOWN_EXPS, PART_WEIGHT),
        .gate_bias = bias_of(b, layer, TENSOR_FFN_GATE_EXPS),
        .up_bias = bias_of(b, layer, TENSOR_FFN_UP_EXPS),
        .down_bias = bias_of(b, layer, TENSOR_FFN_DOWN_EXPS),
    };
    const struct graph_weight *both =
        model_weight(b->m, layer, TENSOR_FFN_GATE_UP_EXPS, PART_WEIGHT);
    struct graph_weight gate, up;

    if (both->t.fmt) {
        gate = graph_weight_part(both, 0, b->hp->n_ff_exp);
        up = graph_weight_part(both, b->hp->n_ff_exp, b->hp->n_ff_exp);
        moe.gate = &gate;
        moe.up = &up;
    }
    if (!moe.gate->t.fmt) { /* the table has no gates: down(act(up x)) */
        moe.alone = true;
        moe.gate = moe.up;
    }
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
