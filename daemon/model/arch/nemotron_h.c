/*
 * nemotron_h: Nemotron-H (NVIDIA 2025, arXiv 2504.03624): each layer is a Mamba-2
 * block, attention without positions, or a feed-forward part of squared ReLU.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_ALL,
    {KEY_RMS_EPS, false},
    {KEY_NORM_EPS, false},
    KEYS_SSM,
    {KEY_SSM_GROUPS, false},
    {KEY_NEXTN_LAYERS, false},
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_ATTENTION_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA2,
    TENSORS_SOME_ATTENTION,
    MATRIX_IN(MLP, FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX_IN(MLP, FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
    BIAS_IN(MLP, FFN_UP, OPTIONAL, DIM_FF),
    BIAS_IN(MLP, FFN_DOWN, OPTIONAL, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_norm_eps(hp, "nemotron_h", err);

    return r < 0 ? r : arch_check_mamba2(hp, "nemotron_h", err);
}

const struct arch arch_nemotron_h = {
    .name = "nemotron_h",
    .rope = OP_ROPE_NORM,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_one_part,
    .layer = blk_one_part_layer,
};
