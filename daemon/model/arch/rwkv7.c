/*
 * rwkv7: RWKV-7 "Goose" (Peng et al. 2025, arXiv 2503.14456): no attention; a
 * state by a generalised delta rule, and both parts of a layer see the row before.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    {KEY_BLOCK_COUNT, true},  {KEY_CONTEXT_LENGTH, true}, {KEY_EMBEDDING_LENGTH, true},
    {KEY_VOCAB_SIZE, false},  {KEY_HEAD_COUNT, false},    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_NORM_EPS, true},     {KEY_WKV_HEAD, true},       {KEY_LORA_DECAY, true},
    {KEY_LORA_RATE, true},    {KEY_LORA_VALUE, true},     {KEY_LORA_GATE, true},
    {KEY_TOKEN_SHIFT, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    BIAS(OUTPUT_NORM, ALWAYS, DIM_EMBD),
    VECTOR(TOKEN_EMBD_NORM, ALWAYS, DIM_EMBD),
    BIAS(TOKEN_EMBD_NORM, ALWAYS, DIM_EMBD),
    MATRIX(OUTPUT, ALWAYS, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    BIAS(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(ATTN_NORM_2, ALWAYS, DIM_EMBD),
    BIAS(ATTN_NORM_2, ALWAYS, DIM_EMBD),
    VECTOR(MIX, ALWAYS, DIM_EMBD, DIM_NONE, DIM_NONE, DIM_SIX),
    MATRIX(MIX_R, ALWAYS, DIM_EMBD, DIM_EMBD),
    MATRIX(MIX_K, ALWAYS, DIM_EMBD, DIM_EMBD),
    MATRIX(MIX_V, ALWAYS, DIM_EMBD, DIM_EMBD),
    VECTOR(MIX_W0, ALWAYS, DIM_EMBD),
    MATRIX(MIX_W1, ALWAYS, DIM_EMBD, DIM_LORA_DECAY),
    MATRIX(MIX_W2, ALWAYS, DIM_LORA_DECAY, DIM_EMBD),
    VECTOR(MIX_A0, ALWAYS, DIM_EMBD),
    MATRIX(MIX_A1, ALWAYS, DIM_EMBD, DIM_LORA_RATE),
    MATRIX(MIX_A2, ALWAYS, DIM_LORA_RATE, DIM_EMBD),
    VECTOR(MIX_V0, LATER, DIM_EMBD),
    MATRIX(MIX_V1, LATER, DIM_EMBD, DIM_LORA_VALUE),
    MATRIX(MIX_V2, LATER, DIM_LORA_VALUE, DIM_EMBD),
    MATRIX(MIX_G1, ALWAYS, DIM_EMBD, DIM_LORA_GATE),
    MATRIX(MIX_G2, ALWAYS, DIM_LORA_GATE, DIM_EMBD),
    VECTOR(MIX_K_K, ALWAYS, DIM_EMBD),
    VECTOR(MIX_K_A, ALWAYS, DIM_EMBD),
    VECTOR(MIX_R_K, ALWAYS, DIM_EMBD),
    VECTOR(MIX_NORM, ALWAYS, DIM_EMBD),
    BIAS(MIX_NORM, ALWAYS, DIM_EMBD),
    MATRIX(MIX_OUT, ALWAYS, DIM_EMBD, DIM_EMBD),
    VECTOR(CHANNEL_MIX, ALWAYS, DIM_EMBD),
    MATRIX(CHANNEL_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX(CHANNEL_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    if (hp->n_embd % hp->ssm_state != 0)
        return err_set(err, ERR_FORMAT,
                       "an embedding of %u does not divide into heads of %u "
                       "('rwkv7.wkv.head_size')",
                       hp->n_embd, hp->ssm_state);
    hp->ssm_rank = hp->n_embd / hp->ssm_state;
    hp->conv_rows = 1;
    hp->conv_width = 2 * hp->n_embd;
    hp->state_heads = hp->ssm_rank;
    hp->state_rows = hp->state_cols = hp->ssm_state;
    return 0;
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_norm(b, x, TENSOR_ATTN_NORM, i);

    x = blk_add(b, x, blk_time_mix(b, i, h));
    h = blk_channel_mix(b, i, blk_norm(b, x, TENSOR_ATTN_NORM_2, i));
    return blk_add(b, x, h);
}

const struct arch arch_rwkv7 = {
    .name = "rwkv7",
    .rope = OP_ROPE_NORM,
    .no_rope = true,
    .layernorm = true,
    .embed_norm = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_recurrent,
    .layer = layer,
};
