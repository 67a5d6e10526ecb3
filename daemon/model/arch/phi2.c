/*
 * phi2: Phi-1.5 and Phi-2 (Li et al. 2023, arXiv 2309.05463): attention and a
 * plain GELU part side by side behind one layer norm, RoPE over a part of
 * each head, biases everywhere.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    BIAS(OUTPUT_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    BIAS(OUTPUT, ALWAYS, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    TENSORS_QKV_BIAS(ALWAYS),
    BIAS(ATTN_OUT, ALWAYS, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
    BIAS(FFN_UP, ALWAYS, DIM_FF),
    BIAS(FFN_DOWN, ALWAYS, DIM_EMBD),
};

const struct arch arch_phi2 = {
    .name = "phi2",
    .rope = OP_ROPE_NEOX,
    .layernorm = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_parallel_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU},
};
