/*
 * falcon: Falcon 7B and 40B (Almazrouei et al. 2023, arXiv 2311.16867):
 * attention and a plain GELU part side by side behind one layer norm, or
 * behind one each.
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
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(ATTN_QKV, ALWAYS, DIM_EMBD, DIM_QKV),
    MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(ATTN_NORM_2, OPTIONAL, DIM_EMBD),
    BIAS(ATTN_NORM_2, OPTIONAL, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
};

const struct arch arch_falcon = {
    .name = "falcon",
    .rope = OP_ROPE_NEOX,
    .layernorm = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_parallel_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU},
};
