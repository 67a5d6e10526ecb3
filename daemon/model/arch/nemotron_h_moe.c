/*
 * nemotron_h_moe: Nemotron 3 (NVIDIA 2025): nemotron_h with experts of squared
 * ReLU without gates, chosen by biased sigmoids, beside a shared one.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_ALL,
    {KEY_RMS_EPS, false},
    {KEY_NORM_EPS, false},
    KEYS_SSM,
    {KEY_SSM_GROUPS, false},
    KEYS_MIXTURE,
    {KEY_ATTENTION_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA2,
    TENSORS_SOME_ATTENTION,
    MATRIX(FFN_GATE_INP, MOE, DIM_EMBD, DIM_EXPERT),
    BIAS(EXP_PROBS_B, MOE, DIM_EXPERT),
    MATRIX(FFN_UP_EXPS, MOE, DIM_EMBD, DIM_FF_EXP, DIM_EXPERT),
    MATRIX(FFN_DOWN_EXPS, MOE, DIM_FF_EXP, DIM_EMBD, DIM_EXPERT),
    MATRIX(FFN_UP_SHEXP, SHARED, DIM_EMBD, DIM_FF_SHEXP),
    MATRIX(FFN_DOWN_SHEXP, SHARED, DIM_FF_SHEXP, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_mixture(hp, "nemotron_h_moe", EXPERT_GATING_SIGMOID, err);

    if (r < 0)
        return r;
    r = arch_check_norm_eps(hp, "nemotron_h_moe", err);
    return r < 0 ? r : arch_check_mamba2(hp, "nemotron_h_moe", err);
}

const struct arch arch_nemotron_h_moe = {
    .name = "nemotron_h_moe",
    .rope = OP_ROPE_NORM,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_one_part,
    .layer = blk_one_part_layer,
};
