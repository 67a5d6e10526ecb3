/*
 * granite: Granite 3 (IBM 2024): llama with scales on embeddings, attention,
 * residuals and logits (Yang et al. 2022, arXiv 2203.03466).
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_ATTENTION_SCALE, false},
    {KEY_EMBEDDING_SCALE, false},
    {KEY_RESIDUAL_SCALE, false},
    {KEY_LOGIT_SCALE, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    TENSORS_QKV_BIAS(OPTIONAL),
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
    BIAS(FFN_GATE, OPTIONAL, DIM_FF),
    BIAS(FFN_UP, OPTIONAL, DIM_FF),
    BIAS(FFN_DOWN, OPTIONAL, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    arch_scales(hp);
    return 0;
}

const struct arch arch_granite = {
    .name = "granite",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
};
