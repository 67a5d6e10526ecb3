/*
 * deepseek: DeepSeekMoE (Dai et al. 2024, arXiv 2401.06066): leading dense
 * layers, fine-grained experts weighted by a softmax over all of them as it is,
 * and shared experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
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
    return arch_check_mixture(hp, "deepseek", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_deepseek = {
    .name = "deepseek",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
};
