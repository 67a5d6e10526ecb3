/*
 * dots1: dots.llm1 (Huo et al. 2025, arXiv 2506.05767): norms of the heads of q
 * and k, a sigmoid router with a bias of the choice, shared experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_mixture(hp, "dots1", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_dots1 = {
    .name = "dots1",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true}},
};
