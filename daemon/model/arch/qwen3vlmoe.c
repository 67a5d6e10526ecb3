/*
 * qwen3vlmoe: the text part of Qwen3-VL's mixtures (Bai et al. 2025, arXiv
 * 2511.21631): qwen3moe with RoPE in sections of time, height and width, which
 * are all the token's position in text.
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
    hp->expert_norm = true;
    return arch_check_mixture(hp, "qwen3vlmoe", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_qwen3vlmoe = {
    .name = "qwen3vlmoe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true}},
};
