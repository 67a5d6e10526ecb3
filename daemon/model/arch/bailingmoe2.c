/*
 * bailingmoe2: Ling 2.0 (Ling team 2025, arXiv 2510.22115): queries, keys and
 * values of one tensor, norms of the heads of q and k, a sigmoid router over
 * groups of experts with a bias of the choice, shared experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(ATTN_QKV, ALWAYS, DIM_EMBD, DIM_QKV),
    MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_ff_shexp *= hp->n_shared; /* the file gives the width of one */
    return arch_check_mixture(hp, "bailingmoe2", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_bailingmoe2 = {
    .name = "bailingmoe2",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true}},
};
