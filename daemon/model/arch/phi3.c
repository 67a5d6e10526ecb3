/*
 * phi3: Phi-3, 3.5 and 4 (Abdin et al. 2024, arXiv 2404.14219): queries, keys
 * and values in one tensor, gate and up in another; RoPE factors for short
 * and for long contexts. Windows that files name are not used: the published
 * weights are run without them.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_LONGROPE,
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(ATTN_QKV, ALWAYS, DIM_EMBD, DIM_QKV),
    MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_GATE_UP),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
};

const struct arch arch_phi3 = {
    .name = "phi3",
    .rope = OP_ROPE_NEOX,
    .longrope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = blk_plain_layer,
};
