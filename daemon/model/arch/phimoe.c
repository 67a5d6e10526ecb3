/*
 * phimoe: Phi-3.5-MoE (Abdin et al. 2024, arXiv 2404.14219): phi3's RoPE factors,
 * RMS norms with a bias, biases everywhere but in the experts, and a softmax
 * router whose chosen ones are scaled to a sum of 1.
 *
 * The published modelling code has layer norms instead, weighs each of two
 * experts by a softmax over those near its own logit (arXiv 2310.00811), and has
 * a magnitude of its own for short and for long contexts.  Files are made for,
 * and known by, what is computed here.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_EXPERT_COUNT, true},
    {KEY_EXPERT_USED_COUNT, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    BIAS(OUTPUT_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    BIAS(OUTPUT, ALWAYS, DIM_VOCAB),
    TENSORS_LONGROPE,
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS_FUSED,
    BIAS(ATTN_QKV, OPTIONAL, DIM_QKV),
    TENSORS_QKV_BIAS(OPTIONAL),
    BIAS(ATTN_OUT, ALWAYS, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    BIAS(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_EXPERTS(MOE),
};

static int check(struct hparams *hp, struct err *err)
{
    hp->n_ff_exp = hp->n_ff;
    hp->expert_norm = true;
    return arch_check_mixture(hp, "phimoe", EXPERT_GATING_SOFTMAX, err);
}

const struct arch arch_phimoe = {
    .name = "phimoe",
    .rope = OP_ROPE_NEOX,
    .longrope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
};
