/*
 * deepseek32: DeepSeek-V3.2 (arXiv 2512.02556): deepseek2 with an indexer in
 * every layer, so that attention is over the best positions alone.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    KEYS_MLA,
    KEYS_INDEXER,
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB), TENSORS_MLA, TENSORS_INDEXER,
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    for (uint32_t i = 0; i < hp->n_layers; i++)
        hp->layers[i].indexer = true;
    if (blk_mla_check(hp, "deepseek32", false, err) < 0)
        return -ERR_FORMAT;
    if (blk_indexer_check(hp, "deepseek32", err) < 0)
        return -ERR_FORMAT;
    return arch_check_mixture(hp, "deepseek32", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_deepseek32 = {
    .name = "deepseek32",
    .rope = OP_ROPE_NORM,
    .indexer_rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_mla_layer,
};
