/*
 * gpt-oss: OpenAI's open-weight mixtures (OpenAI 2025, arXiv 2508.10925): a
 * window in every other layer, a sink for each head, biases everywhere, and
 * experts with a clamped SwiGLU, weighted by a softmax over the chosen ones
 * (which is one over all of them, scaled to a sum of 1).
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,           {KEY_FEED_FORWARD_LENGTH, false},
    {KEY_EXPERT_COUNT, true},   {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_FF, false},     {KEY_EXPERT_SCALE, false},
    {KEY_SWA_WINDOW, true},     {KEY_SWA_PATTERN, false},
    {KEY_ROPE_BASE_SWA, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    TENSORS_QKV_BIAS(ALWAYS),
    BIAS(ATTN_OUT, ALWAYS, DIM_EMBD),
    VECTOR(ATTN_SINKS, ALWAYS, DIM_HEADS),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_EXPERTS(ALWAYS),
    BIAS(FFN_GATE_INP, ALWAYS, DIM_EXPERT),
    BIAS(FFN_GATE_EXPS, ALWAYS, DIM_FF_EXP, DIM_EXPERT),
    BIAS(FFN_UP_EXPS, ALWAYS, DIM_FF_EXP, DIM_EXPERT),
    BIAS(FFN_DOWN_EXPS, ALWAYS, DIM_EMBD, DIM_EXPERT),
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_experts(hp, "gpt-oss", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h =
        blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), &(struct blk_attention){0});

    x = blk_add(b, x, h);
    h = blk_rmsnorm(b, x, TENSOR_ATTN_POST_NORM, i);
    return blk_add(b, x,
                   blk_moe(b, i, h, &(struct blk_moe){.normalise = true, .act = OP_ACT_CLAMPED}));
}

const struct arch arch_gpt_oss = {
    .name = "gpt-oss",
    .rope = OP_ROPE_NEOX,
    .swa_period = 2,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
