/*
 * hunyuan-moe: Hunyuan-A13B (Tencent 2025, technical report): norms of the heads
 * of q and k behind RoPE, a softmax router whose chosen ones are scaled to a sum
 * of 1, experts of the width of the dense part, one shared expert.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,         {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_EXPERT_COUNT, true}, {KEY_EXPERT_USED_COUNT, true},
    {KEY_SHARED_FF, false},   {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_EXPERTS(MOE),
    TENSORS_SHARED,
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_ff_exp = hp->n_ff;
    hp->n_shared = 1;
    hp->expert_norm = true;
    return arch_check_mixture(hp, "hunyuan-moe", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_hunyuan_moe = {
    .name = "hunyuan-moe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true, .norm_late = true}},
};
