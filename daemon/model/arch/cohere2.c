/*
 * cohere2: Command R7B and Command A (Cohere 2025, arXiv 2504.00698):
 * attention and SwiGLU side by side behind one layer norm; a window in three
 * of four layers, and RoPE in those alone.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,           {KEY_FEED_FORWARD_LENGTH, true}, {KEY_SWA_WINDOW, true},
    {KEY_SWA_PATTERN, false}, {KEY_ROPE_BASE_SWA, false},      {KEY_LOGIT_SCALE, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_cohere2 = {
    .name = "cohere2",
    .rope = OP_ROPE_NORM,
    .layernorm = true,
    .swa_period = 4,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_parallel_layer,
    .parts = &(const struct blk_layer){.attention = {.near_rope = true}},
};
