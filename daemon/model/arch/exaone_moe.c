/*
 * exaone-moe: K-EXAONE (LG AI Research 2025, technical report): norms of the heads
 * of q and k, windows with RoPE in three of four layers and none of both in the
 * fourth, a sigmoid router with a bias of the choice, shared experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,           KEYS_MIXTURE, {KEY_SWA_WINDOW, true}, {KEY_SWA_PATTERN, false},
    {KEY_ROPE_BASE_SWA, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_mixture(hp, "exaone-moe", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_exaone_moe = {
    .name = "exaone-moe",
    .rope = OP_ROPE_NEOX,
    .swa_period = 4,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true, .near_rope = true}},
};
