/*
 * mimo2: MiMo-V2-Flash (Xiaomi 2025, technical report): windows with sinks in
 * most layers, values of another width than keys and scaled, RoPE over a part
 * of a head, experts by a sigmoid router where a layer has one.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,           KEYS_MIXTURE,
    {KEY_SWA_WINDOW, true},     {KEY_SWA_PATTERN, true},
    {KEY_ROPE_BASE_SWA, false}, {KEY_VALUE_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS_FUSED,
    VECTOR(ATTN_SINKS, OPTIONAL, DIM_HEADS),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_FFN(DENSE),
    TENSORS_EXPERTS(MOE),
    BIAS(EXP_PROBS_B, MOE_OPTIONAL, DIM_EXPERT),
};

static int check(struct hparams *hp, struct err *err)
{
    hp->expert_gating = EXPERT_GATING_SIGMOID;
    hp->expert_norm = true;
    return arch_check_mixture(hp, "mimo2", EXPERT_GATING_SIGMOID, err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h =
        blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), &(struct blk_attention){0});

    if (b->hp->has[KEY_VALUE_SCALE])
        h = graph_scale(b->g, h, b->hp->value_scale);
    x = blk_add(b, x, h);
    return blk_add(b, x, blk_mixture(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

const struct arch arch_mimo2 = {
    .name = "mimo2",
    .swa_unscaled = true,
    .rope = OP_ROPE_NEOX,
    .moe_by_router = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
