/*
 * seed_oss: Seed-OSS (ByteDance 2025): llama with RoPE on halves, biases on
 * q, k and v, and the norm before the feed-forward part under another name.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_ATTENTION_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    TENSORS_QKV_BIAS(OPTIONAL),
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_seed_oss = {
    .name = "seed_oss",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.ffn_norm = TENSOR_ATTN_POST_NORM},
};
