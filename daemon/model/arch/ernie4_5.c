/*
 * ernie4_5: ERNIE 4.5's dense models (Baidu 2025): llama with heads of a
 * width of their own.
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
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_ernie4_5 = {
    .name = "ernie4_5",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
};
