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
    const struct graph_weight *w = blk_bias(b, layer, TENSOR_EXP_PROBS_B);

    return w->t.fmt ? w : blk_bare(b, layer, TENSOR_EXP_PROBS_B);
}

graph_value blk_mixture_of(struct build *b, int layer, graph_value x, enum op_act act)
{
    graph_value y;

    if (!(b->hp->layers[layer].kind & LAYER_MOE))
        return blk_ffn(b, layer, x, act);
    y = blk_moe(b, layer, x, &(struct blk_moe){.normalise = b->hp->expert_norm, .act = act});
    return b->hp->n_ff_shexp ? blk_add(b, y, blk_ffn_shared(b, layer, x, act)) : y;
}

graph_value blk_mixture(struct build *b, int layer, graph_value x)
{
    return blk_mixture_of(b, layer, x, OP_ACT_SILU);
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
        .ids = blk_weight(b, layer, TENSOR_TOKEN_EXPERTS),
        .weigh_first = opt->weigh_first,
        .router = blk_weight(b, layer, TENSOR_FFN_GATE_INP),
        .router_x = opt->router_x,
        .factor = model_weight(b->m, layer, TENSOR_FFN_DOWN_EXPS, PART_SCALE),
        .router_bias = blk_bias(b, layer, TENSOR_FFN_GATE_INP),
        .bias = choice_bias(b, layer),
        .gate = blk_weight(b, layer, TENSOR_FFN_GATE_EXPS),
        .up = blk_weight(b, layer, TENSOR_FFN_UP_EXPS),
        .down = blk_weight(b, layer, TENSOR_FFN_DOWN_EXPS),
        .gate_bias = blk_bias(b, layer, TENSOR_FFN_GATE_EXPS),
        .up_bias = blk_bias(b, layer, TENSOR_FFN_UP_EXPS),
        .down_bias = blk_bias(b, layer, TENSOR_FFN_DOWN_EXPS),
    };
    const struct graph_weight *both = blk_weight(b, layer, TENSOR_FFN_GATE_UP_EXPS);
    struct graph_weight gate, up;

    if (both->t.fmt) {
        gate = graph_weight_rows(both, 0, b->hp->n_ff_exp);
        up = graph_weight_rows(both, b->hp->n_ff_exp, b->hp->n_ff_exp);
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
        .router = blk_weight(b, layer, TENSOR_FFN_GATE_INP_SHEXP),
        .gate = blk_weight(b, layer, TENSOR_FFN_GATE_SHEXP),
        .up = blk_weight(b, layer, TENSOR_FFN_UP_SHEXP),
        .down = blk_weight(b, layer, TENSOR_FFN_DOWN_SHEXP),
    };

    return graph_moe(b->g, x, &moe);
}
