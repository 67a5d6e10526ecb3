/*
 * hy_v3: Hunyuan 3 (Tencent 2026, model card and modelling code): norms of the
 * heads of q and k, a sigmoid router with a bias of the choice, one shared
 * expert; a layer has experts where it has a router.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_FFN(DENSE),
    TENSORS_EXPERTS(MOE),
    BARE(EXP_PROBS_B, MOE_OPTIONAL, DIM_EXPERT),
    TENSORS_SHARED,
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_shared = 1;
    return arch_check_mixture(hp, "hy_v3", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_hy_v3 = {
    .name = "hy_v3",
    .rope = OP_ROPE_NEOX,
    .moe_by_router = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true}},
};
