/*
 * deepseek4: DeepSeek-V4 (its published modelling code): hyper-connections,
 * attention to a window and to keys of groups of positions, experts by the root
 * of a softplus, in the first layers by the token alone.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_INDEXER,
    {KEY_FEED_FORWARD_LENGTH, false},
    {KEY_EXPERT_COUNT, true},
    {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_FF, true},
    {KEY_EXPERT_SCALE, true},
    {KEY_EXPERT_NORM, true},
    {KEY_EXPERT_GATING, true},
    {KEY_EXPERT_SHARED_COUNT, true},
    {KEY_NEXTN_LAYERS, false},
    {KEY_Q_LORA, true},
    {KEY_SWA_WINDOW, true},
    {KEY_LIMIT, true},
    {KEY_LIMIT_SHARED, false},
    {KEY_COMPRESS_RATIOS, true},
    {KEY_COMPRESS_BASE, true},
    {KEY_OUT_GROUPS, true},
    {KEY_OUT_LORA, true},
    {KEY_STREAMS, true},
    {KEY_SINKHORN, true},
    {KEY_STREAM_EPS, true},
    {KEY_HASH_LAYERS, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    MATRIX(HYPER_HEAD, ALWAYS, DIM_STREAMS_IN, DIM_STREAMS),
    VECTOR(HYPER_HEAD_BASE, ALWAYS, DIM_STREAMS),
    VECTOR(HYPER_HEAD_SCALE, ALWAYS, DIM_NONE),
    MATRIX(HYPER_ATTN, ALWAYS, DIM_STREAMS_IN, DIM_STREAMS_MIX),
    VECTOR(HYPER_ATTN_BASE, ALWAYS, DIM_STREAMS_MIX),
    VECTOR(HYPER_ATTN_SCALE, ALWAYS, DIM_THREE),
    MATRIX(HYPER_FFN, ALWAYS, DIM_STREAMS_IN, DIM_STREAMS_MIX),
    VECTOR(HYPER_FFN_BASE, ALWAYS, DIM_STREAMS_MIX),
    VECTOR(HYPER_FFN_SCALE, ALWAYS, DIM_THREE),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(ATTN_SINKS, ALWAYS, DIM_HEADS),
    MATRIX(ATTN_Q_A, ALWAYS, DIM_EMBD, DIM_Q_LORA),
    VECTOR(ATTN_Q_A_NORM, ALWAYS, DIM_Q_LORA),
    MATRIX(ATTN_Q_B, ALWAYS, DIM_Q_LORA, DIM_Q),
    MATRIX(ATTN_KV, ALWAYS, DIM_EMBD, DIM_HEAD),
    VECTOR(ATTN_KV_A_NORM, ALWAYS, DIM_HEAD),
    STACK(ATTN_OUT_A, ALWAYS, DIM_O_PART, DIM_O_LATENT, DIM_O_GROUPS),
    MATRIX(ATTN_OUT_B, ALWAYS, DIM_O_LATENTS, DIM_EMBD),
    MATRIX_IN(GROUPS, COMPRESS_KV, ALWAYS, DIM_EMBD, DIM_GROUP_KEY),
    MATRIX_IN(GROUPS, COMPRESS_GATE, ALWAYS, DIM_EMBD, DIM_GROUP_KEY),
    VECTOR_IN(GROUPS, COMPRESS_PLACE, ALWAYS, DIM_GROUP_KEY, DIM_GROUP),
    VECTOR_IN(GROUPS, COMPRESS_NORM, ALWAYS, DIM_HEAD),
    MATRIX(INDEXER_PROJ, INDEXER, DIM_EMBD, DIM_INDEX_HEADS),
    MATRIX(INDEXER_Q, INDEXER, DIM_Q_LORA, DIM_INDEX_Q),
    MATRIX(INDEXER_KV, INDEXER, DIM_EMBD, DIM_INDEX2),
    MATRIX(INDEXER_GATE, INDEXER, DIM_EMBD, DIM_INDEX2),
    VECTOR(INDEXER_PLACE, INDEXER, DIM_INDEX2, DIM_GROUP),
    VECTOR(INDEXER_NORM, INDEXER, DIM_INDEX),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_EXPERTS(ALWAYS),
    BIAS_IN(GATED, EXP_PROBS_B, ALWAYS, DIM_EXPERT),
    IDS_IN(HASH, TOKEN_EXPERTS, ALWAYS, DIM_EXPERTS_USED, DIM_VOCAB),
    TENSORS_SHARED,
};

static int check_attention(const struct hparams *hp, struct err *err)
{
    if (hp->n_kv_heads != 1 || hp->v_dim != hp->head_dim)
        return err_set(err, ERR_FORMAT,
                       "'deepseek4' has one key for all heads, which is their value too; the file "
                       "has %u of %u and values of %u",
                       hp->n_kv_heads, hp->head_dim, hp->v_dim);
    if (!hp->n_swa || !hp->n_q_lora)
        return err_set(err, ERR_FORMAT,
                       "'deepseek4.attention.sliding_window' is %u and "
                       "'deepseek4.attention.q_lora_rank' %u; neither may be 0",
                       hp->n_swa, hp->n_q_lora);
    if (hp->n_heads % hp->n_out_groups != 0)
        return err_set(err, ERR_FORMAT,
                       "%u heads do not divide into %u parts "
                       "('deepseek4.attention.output_group_count')",
                       hp->n_heads, hp->n_out_groups);
    if (hp->index_dim < hp->n_rot)
        return err_set(err, ERR_FORMAT, "RoPE over %u values is wider than an indexer's head of %u",
                       hp->n_rot, hp->index_dim);
    return 0;
}

/* Which groups there are: of 4, that overlap and are chosen from, and of 128. */
static int check_groups(struct hparams *hp, struct err *err)
{
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        struct hparams_layer *y = &hp->layers[i];

        if (y->group != 0 && y->group != 4 && y->group != 128)
            return err_set(err, ERR_UNSUPPORTED,
                           "'deepseek4.attention.compress_ratios' is %u in layer %u; 0, 4 and 128 "
                           "are supported",
                           y->group, i);
        y->indexer = y->group == 4;
        if (!hp->has[KEY_LIMIT_SHARED])
            y->limit_shared = y->limit;
    }
    return 0;
}

static int check(struct hparams *hp, struct err *err)
{
    int r = check_attention(hp, err);

    if (r >= 0)
        r = check_groups(hp, err);
    if (r >= 0)
        r = arch_check_mixture(hp, "deepseek4", EXPERT_GATING_SQRT_SOFTPLUS, err);
    if (r < 0)
        return r;
    if (hp->expert_gating != EXPERT_GATING_SQRT_SOFTPLUS)
        return err_set(err, ERR_UNSUPPORTED,
                       "'deepseek4.expert_gating_func' is %u; %d, the root of a softplus, is "
                       "supported",
                       hp->expert_gating, EXPERT_GATING_SQRT_SOFTPLUS);
    /* Layers without groups turn by a base of their own, unscaled; YaRN has no magnitude here. */
    hp->rope_base_swa = hp->rope_base;
    hp->rope_base = hp->rope_base_groups;
    if (hp->rope_scaling == ROPE_SCALING_YARN)
        hp->yarn_attn_factor = (float)(1.0 / (1.0 + 0.1 * log((double)hp->rope_factor)));
    hp->absorbed = true;
    return 0;
}

static unsigned kind(const struct hparams *hp, int layer)
{
    unsigned kind = LAYER_ATTENTION | LAYER_MOE;

    kind |= hp->layers[layer].group ? LAYER_GROUPS : 0;
    return kind | ((uint32_t)layer < hp->n_hash_layers ? LAYER_HASH : LAYER_GATED);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value mix, h;

    if (i == 0)
        x = blk_streams(b, x);
    h = blk_enter(b, i, x, TENSOR_HYPER_ATTN, &mix);
    h = blk_near_far(b, i, blk_rmsnorm(b, h, TENSOR_ATTN_NORM, i));
    x = blk_leave(b, x, h, mix);
    h = blk_enter(b, i, x, TENSOR_HYPER_FFN, &mix);
    h = blk_mixture(b, i, blk_rmsnorm(b, h, TENSOR_FFN_NORM, i));
    x = blk_leave(b, x, h, mix);
    return i == (int)b->hp->n_layers - 1 ? blk_one_stream(b, x) : x;
}

const struct arch arch_deepseek4 = {
    .name = "deepseek4",
    .rope = OP_ROPE_NORM,
    .rope_back = true,
    .swa_unscaled = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = kind,
    .layer = layer,
};
