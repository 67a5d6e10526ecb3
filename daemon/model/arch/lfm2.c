/*
 * lfm2: LFM2 (Liquid AI 2025, arXiv 2511.23404): gated short convolutions in most
 * layers, attention with QK-norm in the others.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_SHORTCONV, true},
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    MATRIX(TOKEN_EMBD, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(TOKEN_EMBD_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_NORM, ALWAYS, DIM_EMBD),
    VECTOR_IN(RECURRENT, SHORTCONV_CONV, ALWAYS, DIM_CONV, DIM_EMBD),
    MATRIX_IN(RECURRENT, SHORTCONV_IN, ALWAYS, DIM_EMBD, DIM_EMBD3),
    MATRIX_IN(RECURRENT, SHORTCONV_OUT, ALWAYS, DIM_EMBD, DIM_EMBD),
    TENSORS_SOME_ATTENTION,
    VECTOR_IN(ATTENTION, ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR_IN(ATTENTION, ATTN_K_NORM, ALWAYS, DIM_HEAD),
    TENSORS_FFN(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->conv_rows = hp->ssm_conv - 1;
    hp->conv_width = hp->n_embd;
    return 0;
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    if (b->hp->layers[i].kind & LAYER_RECURRENT)
        h = blk_shortconv(b, i, h);
    else
        h = blk_attention(b, i, h, &(struct blk_attention){.qk_norm = true});
    x = blk_add(b, x, h);
    return blk_add(b, x, blk_swiglu(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

const struct arch arch_lfm2 = {
    .name = "lfm2",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_by_heads,
    .layer = layer,
};
