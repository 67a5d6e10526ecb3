/*
 * bert: BERT (Devlin et al. 2018, arXiv 1810.04805) and what is made like it to
 * embed texts: a table of positions and one of token types, layer norms behind
 * the sums, a plain GELU part; every token sees all of the text.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_LAYERNORM,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    MATRIX(TOKEN_EMBD, ALWAYS, DIM_EMBD, DIM_VOCAB),
    MATRIX(TOKEN_TYPES, OPTIONAL, DIM_EMBD, DIM_ANY),
    MATRIX(POSITION_EMBD, ALWAYS, DIM_EMBD, DIM_CTX),
    TENSORS_OUTER_NORMS,
    TENSORS_PROJECTIONS,
    TENSORS_QKV_BIAS(OPTIONAL),
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    BIAS(FFN_UP, OPTIONAL, DIM_FF),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
    BIAS(FFN_DOWN, OPTIONAL, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_encoder(hp, "bert", err);
}

const struct arch arch_bert = {
    .name = "bert",
    .no_rope = true,
    .outer_norms = true,
    .layernorm = true,
    .encoder = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_outer_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU},
};
