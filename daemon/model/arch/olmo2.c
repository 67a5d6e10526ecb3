/*
 * olmo2: OLMo 2 and 3 (OLMo Team 2024, arXiv 2501.00656): norms behind each
 * part and none before, norms of whole rows of q and k; in the third, a
 * window in three of four layers, whose RoPE is not scaled.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,         {KEY_FEED_FORWARD_LENGTH, true}, {KEY_SWA_WINDOW, false},
    {KEY_SWA_PATTERN, false}, {KEY_ROPE_BASE_SWA, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    TENSORS_PROJECTIONS,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_Q),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_K),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_olmo2 = {
    .name = "olmo2",
    .rope = OP_ROPE_NEOX,
    .swa_unscaled = true,
    .swa_period = 4,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_post_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true, .norm_rows = true}},
};
