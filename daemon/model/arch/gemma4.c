/*
 * gemma4: Gemma 4 and, of its parts, Gemma 3n (Google DeepMind 2025; Kamath et
 * al. 2025, arXiv 2503.19786): windows with heads and RoPE of their own; the
 * last layers read the keys and values of earlier ones; each layer adds a gated
 * embedding of its own; in the mixtures the dense part stands beside the
 * experts, and the router sees the unscaled norm of their input.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_SWA_WINDOW, true},
    {KEY_SWA_PATTERN, true},
    {KEY_ROPE_BASE_SWA, false},
    {KEY_KEY_LENGTH_SWA, true},
    {KEY_VALUE_LENGTH_SWA, true},
    {KEY_ROPE_DIMENSIONS_SWA, false},
    {KEY_SHARED_KV_LAYERS, false},
    {KEY_EMBEDDING_PER_LAYER, true},
    {KEY_FINAL_SOFT_CAP, false},
    {KEY_EXPERT_COUNT, false},
    {KEY_EXPERT_USED_COUNT, false},
    {KEY_EXPERT_FF, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_OWN_TABLES(EMBD_LAYER),
    TENSORS_SHARING(OPTIONAL),
    TENSORS_EXPERTS(MOE),
    TENSOR_ROW(FFN_GATE_INP, PART_SCALE, NEED_MOE, USE_VECTOR, 0, DIM_EMBD),
    TENSOR_ROW(FFN_DOWN_EXPS, PART_SCALE, NEED_MOE_OPTIONAL, USE_VECTOR, 0, DIM_EXPERT),
    VECTOR(FFN_PRE_NORM_2, MOE, DIM_EMBD),
    VECTOR(FFN_POST_NORM_1, MOE, DIM_EMBD),
    VECTOR(FFN_POST_NORM_2, MOE, DIM_EMBD),
    TENSORS_OWN(EMBD_LAYER),
    VECTOR(LAYER_SCALE, OPTIONAL, DIM_NONE),
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_shared(hp, "gemma4", err);

    if (r >= 0 && hp->n_expert)
        r = arch_check_experts(hp, "gemma4", err);
    hp->embedding_scale = sqrtf((float)hp->n_embd);
    hp->attention_scale = 1.0f;
    return r;
}

/* The dense part and the experts, each between norms of its own. */
static graph_value mixture(struct build *b, int i, graph_value x)
{
    graph_value dense = blk_ffn(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i), OP_ACT_GELU);
    graph_value seen = graph_rmsnorm(
        b->g, x, model_weight(b->m, i, TENSOR_FFN_GATE_INP, PART_SCALE), b->hp->rms_eps, 0);
    struct blk_moe opt = {.normalise = true, .act = OP_ACT_GELU, .router_x = &seen};
    graph_value experts;

    seen = graph_scale(b->g, seen, 1.0f / sqrtf((float)b->hp->n_embd));
    experts = blk_moe(b, i, blk_rmsnorm(b, x, TENSOR_FFN_PRE_NORM_2, i), &opt);
    return blk_add(b, blk_rmsnorm(b, dense, TENSOR_FFN_POST_NORM_1, i),
                   blk_rmsnorm(b, experts, TENSOR_FFN_POST_NORM_2, i));
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    const struct graph_weight *scale = blk_weight(b, i, TENSOR_LAYER_SCALE);
    graph_value own = b->hp->n_embd_layer ? blk_own_embedding(b, i) : GRAPH_NONE;
    graph_value h = blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i),
                                  &(struct blk_attention){.qk_norm = true, .v_norm = true});

    x = blk_add(b, x, blk_rmsnorm(b, h, TENSOR_ATTN_POST_NORM, i));
    if (b->hp->layers[i].kind & LAYER_MOE)
        h = mixture(b, i, x);
    else
        h = blk_ffn(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i), OP_ACT_GELU);
    x = blk_add(b, x, blk_rmsnorm(b, h, TENSOR_FFN_POST_NORM, i));
    if (own != GRAPH_NONE)
        x = blk_add(b, x, blk_own(b, i, x, own));
    return scale->t.fmt ? graph_scale_by(b->g, x, scale) : x;
}

const struct arch arch_gemma4 = {
    .name = "gemma4",
    .rope = OP_ROPE_NEOX,
    .swa_unscaled = true,
    .swa_rope_base = 10000.0f,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .kind = arch_kind_shared,
    .check = check,
    .layer = layer,
};
