/*
 * granitemoe: Granite 3's mixtures (IBM 2024): granite with experts, weighted
 * by a softmax over the chosen ones, and in some a shared one beside them.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    {KEY_ATTENTION_SCALE, false},
    {KEY_EMBEDDING_SCALE, false},
    {KEY_RESIDUAL_SCALE, false},
    {KEY_LOGIT_SCALE, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    arch_scales(hp);
    hp->n_ff_exp = hp->n_ff;
    hp->expert_norm = true;
    return arch_check_mixture(hp, "granitemoe", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_granitemoe = {
    .name = "granitemoe",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
};
