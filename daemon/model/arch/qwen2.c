/*
 * qwen2: Qwen2 and Qwen2.5 (Yang et al. 2024, arXiv 2407.10671): biases on q,
 * k and v, RoPE on halves, SwiGLU.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    BIAS(OUTPUT, OPTIONAL, DIM_VOCAB),
    TENSORS_ATTENTION,
    BIAS(ATTN_Q, OPTIONAL, DIM_Q),
    BIAS(ATTN_K, OPTIONAL, DIM_K),
    BIAS(ATTN_V, OPTIONAL, DIM_V),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_qwen2 = {
    .name = "qwen2",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
};
