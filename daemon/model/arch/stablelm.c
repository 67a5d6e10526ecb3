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
    const struct blk_layer opt = {.attention = {.qk_norm = true}, .ffn_norm = TENSOR_FFN_NORM};

    if (model_weight(b->m, i, TENSOR_FFN_NORM, PART_WEIGHT)->t.fmt)
        return blk_layer(b, i, x, &opt);
    return blk_layer_parallel(b, i, x, &opt);
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
};
