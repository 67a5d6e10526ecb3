/*
 * mistral4: Mistral Large 3 and Small 4 (Mistral AI 2025 and 2026, model cards and
 * modelling code): deepseek2 whose queries grow with their position.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    KEYS_MLA,
    {KEY_TEMPERATURE_SCALE, false},
    {KEY_TEMPERATURE_LENGTH, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_MLA,
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    if (hp->temperature_scale > 0.0f && !hp->temperature_length)
        return err_set(err, ERR_FORMAT,
                       "the file has 'mistral4.attention.temperature_scale' without "
                       "'mistral4.attention.temperature_length'");
    if (blk_mla_check(hp, "mistral4", false, err) < 0)
        return -ERR_FORMAT;
    return arch_check_mixture(hp, "mistral4", EXPERT_GATING_SOFTMAX, err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    x = blk_add(b, x,
                blk_mla(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i),
                        &(struct blk_mla){b->hp->temperature_scale, b->hp->temperature_length}));
    return blk_add(b, x, blk_mixture(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

const struct arch arch_mistral4 = {
    .name = "mistral4",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
