/*
 * qwen2moe: Qwen1.5-MoE and Qwen2-57B-A14B (Yang et al. 2024, arXiv
 * 2407.10671): experts weighted by a softmax over all of them as it is, and a
 * shared expert behind a sigmoid gate.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,          {KEY_FEED_FORWARD_LENGTH, false},
    {KEY_EXPERT_COUNT, true},  {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_FF, false},    {KEY_SHARED_FF, false},
    {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    BIAS(ATTN_Q, OPTIONAL, DIM_Q),
    BIAS(ATTN_K, OPTIONAL, DIM_K),
    BIAS(ATTN_V, OPTIONAL, DIM_V),
    TENSORS_EXPERTS(ALWAYS),
    MATRIX(FFN_GATE_INP_SHEXP, ALWAYS, DIM_EMBD),
    MATRIX(FFN_GATE_SHEXP, ALWAYS, DIM_EMBD, DIM_FF_SHEXP),
    MATRIX(FFN_UP_SHEXP, ALWAYS, DIM_EMBD, DIM_FF_SHEXP),
    MATRIX(FFN_DOWN_SHEXP, ALWAYS, DIM_FF_SHEXP, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    if (!hp->n_ff_shexp)
        hp->n_ff_shexp = hp->n_ff;
    return arch_check_experts(hp, "qwen2moe", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h =
        blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), &(struct blk_attention){0});
    graph_value experts;

    x = blk_add(b, x, h);
    h = blk_rmsnorm(b, x, TENSOR_FFN_NORM, i);
    experts = blk_moe(b, i, h, &(struct blk_moe){.normalise = false});
    return blk_add(b, x, blk_add(b, experts, blk_shared_expert(b, i, h)));
}

const struct arch arch_qwen2moe = {
    .name = "qwen2moe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
