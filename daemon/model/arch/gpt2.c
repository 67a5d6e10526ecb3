/*
 * gpt2: GPT-2 (Radford et al. 2019): a table of positions in place of RoPE,
 * layer norms, a plain GELU part, biases everywhere.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(POSITION_EMBD, ALWAYS, DIM_EMBD, DIM_CTX),
    BIAS(OUTPUT_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(ATTN_QKV, ALWAYS, DIM_EMBD, DIM_QKV),
    MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    BIAS(ATTN_QKV, ALWAYS, DIM_QKV),
    BIAS(ATTN_OUT, ALWAYS, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    BIAS(FFN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
    BIAS(FFN_UP, ALWAYS, DIM_FF),
    BIAS(FFN_DOWN, ALWAYS, DIM_EMBD),
};

const struct arch arch_gpt2 = {
    .name = "gpt2",
    .rope = OP_ROPE_NEOX,
    .layernorm = true,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU},
};
