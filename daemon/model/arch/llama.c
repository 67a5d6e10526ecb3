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

/* Mixtral's experts have the width of the dense part. */
static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->n_ff_exp = hp->n_ff;
    return 0;
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h =
        blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), &(struct blk_attention){0});

    x = blk_add(b, x, h);
    h = blk_rmsnorm(b, x, TENSOR_FFN_NORM, i);
    h = b->hp->n_expert ? blk_moe(b, i, h, &(struct blk_moe){.normalise = true})
                        : blk_swiglu(b, i, h);
    return blk_add(b, x, h);
}

const struct arch arch_llama = {
    .name = "llama",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
