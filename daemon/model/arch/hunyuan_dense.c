/*
 * hunyuan-dense: Hunyuan's dense models (Tencent 2025): norms of each head of
 * q and k behind RoPE.
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
    TENSORS_QKV_BIAS(OPTIONAL),
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_hunyuan_dense = {
    .name = "hunyuan-dense",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true, .norm_late = true}},
};
