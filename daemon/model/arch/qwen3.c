/*
 * qwen3: Qwen3's dense models (Yang et al. 2025, arXiv 2505.09388): a norm of
 * each head of q and k, RoPE on halves, heads of a width of their own, SwiGLU.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_FFN(ALWAYS),
};

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i),
                                  &(struct blk_attention){.qk_norm = true});

    x = blk_add(b, x, h);
    return blk_add(b, x, blk_swiglu(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

const struct arch arch_qwen3 = {
    .name = "qwen3",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = layer,
};
