/*
 * stablelm: StableLM (Bellagente et al. 2024, arXiv 2402.17834): layer norms,
 * RoPE over a part of each head, SwiGLU; the 12B has both parts side by side
 * and layer norms of each head of q and k.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    BIAS(OUTPUT_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    TENSORS_QKV_BIAS(OPTIONAL),
    VECTOR(ATTN_Q_NORM, OPTIONAL, DIM_HEAD, DIM_HEADS),
    VECTOR(ATTN_K_NORM, OPTIONAL, DIM_HEAD, DIM_KV_HEADS),
    VECTOR(FFN_NORM, OPTIONAL, DIM_EMBD),
    BIAS(FFN_NORM, OPTIONAL, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

static graph_value layer(struct build *b, int i, graph_value x)
{
    bool two = blk_weight(b, i, TENSOR_FFN_NORM)->t.fmt != NULL;

    return two ? blk_plain_layer(b, i, x) : blk_parallel_layer(b, i, x);
}

const struct arch arch_stablelm = {
    .name = "stablelm",
    .rope = OP_ROPE_NEOX,
    .layernorm = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true}},
};
