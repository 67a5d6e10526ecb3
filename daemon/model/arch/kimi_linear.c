/*
 * kimi-linear: Kimi Linear (Moonshot 2025, arXiv 2510.26692): Kimi Delta Attention in
 * most layers, latent attention without positions in the others, experts.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER, KEYS_MLA, KEYS_MIXTURE, {KEY_SSM_CONV, true}, {KEY_KDA_DIM, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    MATRIX_IN(RECURRENT, ATTN_Q, ALWAYS, DIM_EMBD, DIM_SSM_INNER),
    MATRIX_IN(RECURRENT, ATTN_K, ALWAYS, DIM_EMBD, DIM_SSM_INNER),
    MATRIX_IN(RECURRENT, ATTN_V, ALWAYS, DIM_EMBD, DIM_SSM_INNER),
    VECTOR_IN(RECURRENT, SSM_CONV_Q, ALWAYS, DIM_CONV, DIM_NONE, DIM_SSM_INNER),
    VECTOR_IN(RECURRENT, SSM_CONV_K, ALWAYS, DIM_CONV, DIM_NONE, DIM_SSM_INNER),
    VECTOR_IN(RECURRENT, SSM_CONV_V, ALWAYS, DIM_CONV, DIM_NONE, DIM_SSM_INNER),
    MATRIX_IN(RECURRENT, SSM_F_A, ALWAYS, DIM_EMBD, DIM_SSM_STATE),
    MATRIX_IN(RECURRENT, SSM_F_B, ALWAYS, DIM_SSM_STATE, DIM_SSM_INNER),
    MATRIX_IN(RECURRENT, SSM_G_A, ALWAYS, DIM_EMBD, DIM_SSM_STATE),
    MATRIX_IN(RECURRENT, SSM_G_B, ALWAYS, DIM_SSM_STATE, DIM_SSM_INNER),
    MATRIX_IN(RECURRENT, SSM_BETA, ALWAYS, DIM_EMBD, DIM_SSM_RANK),
    BARE_IN(RECURRENT, SSM_A, ALWAYS, DIM_NONE, DIM_SSM_RANK),
    BIAS_IN(RECURRENT, SSM_DT, ALWAYS, DIM_SSM_INNER),
    VECTOR_IN(RECURRENT, SSM_NORM, ALWAYS, DIM_SSM_STATE),
    MATRIX_IN(RECURRENT, ATTN_OUT, ALWAYS, DIM_SSM_INNER, DIM_EMBD),
    MATRIX_IN(ATTENTION, ATTN_Q, ALWAYS, DIM_EMBD, DIM_Q_MLA),
    MATRIX_IN(ATTENTION, ATTN_KV_A, ALWAYS, DIM_EMBD, DIM_KV_A),
    VECTOR_IN(ATTENTION, ATTN_KV_A_NORM, ALWAYS, DIM_KV_LORA),
    MATRIX_IN(ATTENTION, ATTN_K_B, ABSORBED, DIM_NOPE, DIM_KV_LORA, DIM_HEADS),
    MATRIX_IN(ATTENTION, ATTN_V_B, ABSORBED, DIM_KV_LORA, DIM_V_MLA, DIM_HEADS),
    MATRIX_IN(ATTENTION, ATTN_KV_B, EXPANDED, DIM_KV_LORA, DIM_KV_B),
    MATRIX_IN(ATTENTION, ATTN_OUT, ALWAYS, DIM_O_MLA, DIM_EMBD),
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    int r;

    if ((uint64_t)hp->n_heads * hp->ssm_state > 1048576)
        return err_set(err, ERR_FORMAT, "%u heads of %u ('kimi-linear.kda.head_dim') are too many",
                       hp->n_heads, hp->ssm_state);
    hp->ssm_rank = hp->ssm_groups = hp->n_heads;
    hp->ssm_inner = hp->n_heads * hp->ssm_state;
    hp->conv_rows = hp->ssm_conv - 1;
    hp->conv_width = 3 * hp->ssm_inner;
    hp->state_heads = hp->n_heads;
    hp->state_rows = hp->state_cols = hp->ssm_state;
    hp->expert_norm = true;
    r = arch_check_mixture(hp, "kimi-linear", EXPERT_GATING_SIGMOID, err);
    return r < 0 ? r : blk_mla_check(hp, "kimi-linear", false, err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    h = b->hp->layers[i].kind & LAYER_RECURRENT ? blk_kda(b, i, h)
                                                : blk_mla(b, i, h, &(struct blk_mla){0});
    x = blk_add(b, x, h);
    return blk_add(b, x, blk_mixture(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

const struct arch arch_kimi_linear = {
    .name = "kimi-linear",
    .rope = OP_ROPE_NORM,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_by_heads,
    .layer = layer,
};
