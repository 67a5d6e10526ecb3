/*
 * arcee: Arcee AFM (Arcee AI 2025): llama with a plain part of squared ReLU
 * (So et al. 2021, arXiv 2109.08668).
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
};

const struct arch arch_arcee = {
    .name = "arcee",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_RELU2},
};
