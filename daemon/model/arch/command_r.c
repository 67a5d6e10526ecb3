/*
 * command-r: Command R and R+ (Cohere 2024): attention and SwiGLU side by
 * side behind one layer norm, scaled logits; in the large one layer norms of
 * each head of q and k.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_LOGIT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    VECTOR(ATTN_Q_NORM, OPTIONAL, DIM_HEAD, DIM_HEADS),
    VECTOR(ATTN_K_NORM, OPTIONAL, DIM_HEAD, DIM_KV_HEADS),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_command_r = {
    .name = "command-r",
    .rope = OP_ROPE_NORM,
    .layernorm = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_parallel_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true}},
};
