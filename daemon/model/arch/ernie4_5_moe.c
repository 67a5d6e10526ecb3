/*
 * ernie4_5-moe: ERNIE 4.5's mixtures (Baidu 2025, ERNIE 4.5 technical report): a
 * softmax router with a bias of the choice, the chosen ones scaled to a sum of
 * 1; shared experts; experts in every so-manieth layer after the lead.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    {KEY_MOE_STEP, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    hp->expert_gating = EXPERT_GATING_SOFTMAX;
    hp->expert_norm = true;
    return arch_check_mixture(hp, "ernie4_5-moe", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_ernie4_5_moe = {
    .name = "ernie4_5-moe",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
};
