/*
 * nemotron_h: Nemotron-H (NVIDIA 2025, arXiv 2504.03624): each layer is a Mamba-2
 * block, attention without positions, or a feed-forward part of squared ReLU.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_ALL,
    {KEY_RMS_EPS, false},
    {KEY_NORM_EPS, false},
    KEYS_SSM,
    {KEY_SSM_GROUPS, false},
    {KEY_NEXTN_LAYERS, false},
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_ATTENTION_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA2,
    TENSORS_SOME_ATTENTION,
    MATRIX_IN(MLP, FFN_UP, ALWAYS, DIM_EMBD, DIM_FF),
    MATRIX_IN(MLP, FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
    BIAS_IN(MLP, FFN_UP, OPTIONAL, DIM_FF),
    BIAS_IN(MLP, FFN_DOWN, OPTIONAL, DIM_EMBD),
};

/* A layer is one thing: what it has numbers for says which. */
static unsigned kind(const struct hparams *hp, int layer)
{
    const struct hparams_layer *y = &hp->layers[layer];

    if (y->n_ff)
        return LAYER_MLP;
    return y->n_kv_heads ? LAYER_ATTENTION : LAYER_RECURRENT;
}

static int check(struct hparams *hp, struct err *err)
{
    if (!hp->has[KEY_RMS_EPS])
        hp->rms_eps = hp->norm_eps;
    if (!hp->has[KEY_RMS_EPS] && !hp->has[KEY_NORM_EPS])
        return err_set(err, ERR_FORMAT, "'nemotron_h' has neither of the two norm epsilons");
    return arch_check_mamba2(hp, "nemotron_h", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    unsigned kind = b->hp->layers[i].kind;
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    if (kind & LAYER_RECURRENT)
        h = blk_mamba2(b, i, h);
    else if (kind & LAYER_ATTENTION)
        h = blk_attention(b, i, h, &(struct blk_attention){.no_rope = true});
    else
        h = blk_ffn(b, i, h, OP_ACT_RELU2);
    return blk_add(b, x, h);
}

const struct arch arch_nemotron_h = {
    .name = "nemotron_h",
    .rope = OP_ROPE_NORM,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = kind,
    .layer = layer,
};
