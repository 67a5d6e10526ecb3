/*
 * lfm2moe: LFM2-8B-A1B (Liquid AI 2025, arXiv 2511.23404): lfm2 with experts behind
 * the leading dense layers, chosen by biased sigmoids that then sum to 1.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_SHORTCONV, true},
    KEYS_MIXTURE,
};

static const struct tensor_row tensors[] = {
    TENSORS_LFM2,
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    arch_size_shortconv(hp);
    hp->expert_norm = true;
    return arch_check_mixture(hp, "lfm2moe", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_lfm2moe = {
    .name = "lfm2moe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_by_heads,
    .layer = blk_shortconv_layer,
};
