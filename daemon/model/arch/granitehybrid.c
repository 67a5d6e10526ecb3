/*
 * granitehybrid: Granite 4 (IBM 2025): granite with Mamba-2 in most layers, with or
 * without experts, and RoPE only where the file asks for it.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_SSM,
    {KEY_SSM_GROUPS, false},
    {KEY_ROPE_FINETUNED, false},
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_EXPERT_COUNT, false},
    {KEY_EXPERT_USED_COUNT, false},
    {KEY_EXPERT_FF, false},
    {KEY_SHARED_FF, false},
    {KEY_EXPERT_SCALE, false},
    {KEY_ATTENTION_SCALE, false},
    {KEY_EMBEDDING_SCALE, false},
    {KEY_RESIDUAL_SCALE, false},
    {KEY_LOGIT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA2,
    TENSORS_SOME_ATTENTION,
    TENSORS_FFN(DENSE),
    BIAS(FFN_GATE, DENSE_OPTIONAL, DIM_FF),
    BIAS(FFN_UP, DENSE_OPTIONAL, DIM_FF),
    BIAS(FFN_DOWN, DENSE_OPTIONAL, DIM_EMBD),
    TENSORS_EXPERTS(MOE),
    TENSORS_SHARED,
};

static int check(struct hparams *hp, struct err *err)
{
    if (!hp->n_ff_exp)
        hp->n_ff_exp = hp->n_ff;
    hp->expert_norm = true;
    if (!(hp->logit_scale > 0.0f))
        hp->logit_scale = 1.0f;
    arch_scales(hp);
    return arch_check_mamba2(hp, "granitehybrid", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    if (b->hp->layers[i].kind & LAYER_RECURRENT)
        h = blk_mamba2(b, i, h);
    else
        h = blk_attention(b, i, h, &(struct blk_attention){.no_rope = !b->hp->rope_finetuned});
    x = blk_add(b, blk_residual(b, h), x);
    h = blk_mixture(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i));
    return blk_add(b, blk_residual(b, h), x);
}

const struct arch arch_granitehybrid = {
    .name = "granitehybrid",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_by_heads,
    .layer = layer,
};
