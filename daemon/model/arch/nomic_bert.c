/*
 * nomic-bert: Nomic Embed (Nussbaum et al. 2024, arXiv 2402.01613): bert with
 * RoPE in place of a table of positions, and SwiGLU.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    MATRIX(TOKEN_EMBD, ALWAYS, DIM_EMBD, DIM_VOCAB),
    MATRIX(TOKEN_TYPES, OPTIONAL, DIM_EMBD, DIM_ANY),
    TENSORS_OUTER_NORMS,
    MATRIX(ATTN_QKV, ALWAYS, DIM_EMBD, DIM_QKV),
    BIAS(ATTN_QKV, OPTIONAL, DIM_QKV),
    MATRIX(ATTN_OUT, ALWAYS, DIM_O, DIM_EMBD),
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_encoder(hp, "nomic-bert", err);
}

const struct arch arch_nomic_bert = {
    .name = "nomic-bert",
    .rope = OP_ROPE_NEOX,
    .outer_norms = true,
    .layernorm = true,
    .encoder = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_outer_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_SILU},
};
