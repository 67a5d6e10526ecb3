/*
 * olmoe: OLMoE (Muennighoff et al. 2024, arXiv 2409.02060): norms of the whole
 * rows of q and k, experts weighted by a softmax over all of them as it is.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,          {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_EXPERT_COUNT, true},  {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_Q),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_K),
    TENSORS_EXPERTS(MOE),
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_ff_exp = hp->n_ff;
    return arch_check_mixture(hp, "olmoe", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_olmoe = {
    .name = "olmoe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true, .norm_rows = true}},
};
