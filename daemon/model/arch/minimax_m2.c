/*
 * minimax-m2: MiniMax-M2 (MiniMax 2025, model card and modelling code): norms of
 * the whole rows of q and k, RoPE over half of a head, a sigmoid router with a
 * bias of the choice and the chosen ones scaled to a sum of 1.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,          {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_EXPERT_COUNT, true},  {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_SCALE, false}, {KEY_EXPERT_GATING, false},
    {KEY_NEXTN_LAYERS, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_Q),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_K),
    TENSORS_EXPERTS(MOE),
    BIAS(EXP_PROBS_B, MOE_OPTIONAL, DIM_EXPERT),
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_ff_exp = hp->n_ff;
    hp->expert_norm = true;
    return arch_check_mixture(hp, "minimax-m2", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_minimax_m2 = {
    .name = "minimax-m2",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true, .norm_rows = true}},
};
