/*
 * llama: Llama 2 and 3 (Touvron et al. 2023, arXiv 2307.09288; Dubey et al.
 * 2024, arXiv 2407.21783), Mistral, Mixtral (Jiang et al. 2024, arXiv
 * 2401.04088), TinyLlama, SmolLM2: pre-norm, grouped-query attention, RoPE on
 * neighbours, SwiGLU or experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,          {KEY_FEED_FORWARD_LENGTH, true}, {KEY_ATTENTION_SCALE, false},
    {KEY_EXPERT_COUNT, false}, {KEY_EXPERT_USED_COUNT, false},  {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    BIAS(ATTN_Q, OPTIONAL, DIM_Q),
    BIAS(ATTN_K, OPTIONAL, DIM_K),
    BIAS(ATTN_V, OPTIONAL, DIM_V),
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    TENSORS_FFN(DENSE),
    BIAS(FFN_GATE, DENSE_OPTIONAL, DIM_FF),
    BIAS(FFN_UP, DENSE_OPTIONAL, DIM_FF),
    BIAS(FFN_DOWN, DENSE_OPTIONAL, DIM_EMBD),
    TENSORS_EXPERTS(MOE),
};

/* Mixtral's experts have the width of the dense part, and weights with a sum of 1. */
static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->n_ff_exp = hp->n_ff;
    hp->expert_norm = true;
    return 0;
}

const struct arch arch_llama = {
    .name = "llama",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
};
