/*
 * qwen2vl: the text part of Qwen2-VL and Qwen2.5-VL (Wang et al. 2024, arXiv
 * 2409.12191): qwen2 with RoPE in sections of time, height and width, which
 * are one for text.
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
    TENSORS_QKV_BIAS(OPTIONAL),
    TENSORS_FFN(ALWAYS),
};

const struct arch arch_qwen2vl = {
    .name = "qwen2vl",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
};
