/*
 * jamba: Jamba (AI21 2024, arXiv 2403.19887): Mamba with normed steps in most layers,
 * attention without positions in the others, experts in every second one.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_SSM,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_EXPERT_COUNT, false},
    {KEY_EXPERT_USED_COUNT, false},
    {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA,
    VECTOR_IN(RECURRENT, SSM_DT_NORM, ALWAYS, DIM_SSM_RANK),
    VECTOR_IN(RECURRENT, SSM_B_NORM, ALWAYS, DIM_SSM_STATE),
    VECTOR_IN(RECURRENT, SSM_C_NORM, ALWAYS, DIM_SSM_STATE),
    TENSORS_SOME_ATTENTION,
    TENSORS_FFN(DENSE),
    TENSORS_EXPERTS(MOE),
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_ff_exp = hp->n_ff;
    return arch_check_mamba(hp, "jamba", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    if (b->hp->layers[i].kind & LAYER_RECURRENT)
        h = blk_mamba(b, i, h);
    else
        h = blk_attention(b, i, h, &(struct blk_attention){.no_rope = true});
    x = blk_add(b, x, h);
    return blk_add(b, x, blk_mixture(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

const struct arch arch_jamba = {
    .name = "jamba",
    .rope = OP_ROPE_NORM,
    .no_rope = true,
    .moe_by_router = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_by_heads,
    .layer = layer,
};
