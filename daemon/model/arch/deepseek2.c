/*
 * deepseek2: DeepSeek-V2, V3 and R1 (arXiv 2405.04434, 2412.19437, 2501.12948),
 * also GLM-4.7-Flash, Kimi-K2 and others of the kind: latent attention, leading
 * dense layers, experts in groups with a bias of the choice, shared experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    KEYS_MLA,
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_MLA,
    TENSORS_MIXTURE,
};

/* The files' logarithm is a tenth of the paper's; the first of them do not say how they gate. */
static int check(struct hparams *hp, struct err *err)
{
    bool flash = (hp->n_layers == 47 || hp->n_layers == 48) && hp->n_vocab == 154880;

    if (blk_mla_check(hp, "deepseek2", true, err) < 0)
        return -ERR_FORMAT;
    return arch_check_mixture(hp, "deepseek2",
                              flash ? EXPERT_GATING_SIGMOID : EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_deepseek2 = {
    .name = "deepseek2",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_mla_layer,
};
