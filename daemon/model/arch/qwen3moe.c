/*
 * qwen3moe: Qwen3's mixtures (Yang et al. 2025, arXiv 2505.09388): qwen3 with
 * experts; softmax over all of them, the chosen ones scaled to a sum of 1.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,         {KEY_FEED_FORWARD_LENGTH, false},
    {KEY_EXPERT_COUNT, true}, {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_FF, false},   {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_EXPERTS(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_experts(hp, "qwen3moe", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i),
                                  &(struct blk_attention){.qk_norm = true});

    x = blk_add(b, x, h);
    h = blk_rmsnorm(b, x, TENSOR_FFN_NORM, i);
    return blk_add(b, x, blk_moe(b, i, h, &(struct blk_moe){.normalise = true}));
}

const struct arch arch_qwen3moe = {
    .name = "qwen3moe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
