/*
 * starcoder2: StarCoder 2 (Lozhkov et al. 2024, arXiv 2402.19173): layer
 * norms, a plain GELU part, biases everywhere.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    BIAS(OUTPUT_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_QKV_BIAS(ALWAYS),
    BIAS(ATTN_OUT, ALWAYS, DIM_EMBD),
    BIAS(FFN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
    BIAS(FFN_UP, ALWAYS, DIM_FF),
    BIAS(FFN_DOWN, ALWAYS, DIM_EMBD),
};

const struct arch arch_starcoder2 = {
    .name = "starcoder2",
    .rope = OP_ROPE_NEOX,
    .layernorm = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU},
};
