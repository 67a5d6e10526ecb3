/*
 * muse-glimmer: Muse Glimmer (2026, model card and modelling code): windows with
 * RoPE in three of four layers and none of both in the fourth, a sigmoid gate of
 * what attention gives, norms before and behind both parts, and of what is
 * embedded; scaled and capped logits.
 */

#include "daemon/model/blocks/blocks.h"

#define POST_NORM_EPS 1e-8f /* which no file says */

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,         {KEY_FEED_FORWARD_LENGTH, true}, {KEY_SWA_WINDOW, true},
    {KEY_SWA_PATTERN, false}, {KEY_ROPE_BASE_SWA, false},      {KEY_FINAL_SOFT_CAP, false},
    {KEY_LOGIT_SCALE, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    MATRIX(ATTN_GATE, ALWAYS, DIM_EMBD, DIM_O),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
    VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD),
};

static graph_value post_norm(struct build *b, int i, graph_value x, enum tensor_name name)
{
    return graph_rmsnorm(b->g, x, blk_weight(b, i, name), POST_NORM_EPS, 0);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    struct blk_attention a = {.qk_norm = true, .near_rope = true, .gate_apart = true};
    graph_value h;

    if (i == 0)
        x = graph_rmsnorm(b->g, x, NULL, b->hp->rms_eps, 0);
    h = blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), &a);
    x = blk_add(b, x, post_norm(b, i, h, TENSOR_ATTN_POST_NORM));
    h = blk_swiglu(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i));
    return blk_add(b, x, post_norm(b, i, h, TENSOR_FFN_POST_NORM));
}

const struct arch arch_muse_glimmer = {
    .name = "muse-glimmer",
    .swa_unscaled = true,
    .rope = OP_ROPE_NORM,
    .swa_period = 4,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = layer,
};
