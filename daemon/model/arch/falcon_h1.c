/*
 * falcon-h1: Falcon-H1 (TII 2025, arXiv 2507.22448): attention and Mamba-2 side by
 * side in every layer, their outputs added.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_SSM,
    {KEY_SSM_GROUPS, true},
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_ATTENTION_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    BARE(FFN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA2,
    TENSORS_SOME_ATTENTION,
    TENSORS_FFN(ALWAYS),
    BIAS(FFN_GATE, OPTIONAL, DIM_FF),
    BIAS(FFN_UP, OPTIONAL, DIM_FF),
    BIAS(FFN_DOWN, OPTIONAL, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_mamba2(hp, "falcon-h1", err);
}

static unsigned kind(const struct hparams *hp, int layer)
{
    (void)hp;
    (void)layer;
    return LAYER_ATTENTION | LAYER_RECURRENT;
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    const struct graph_weight *norm = blk_bare(b, i, TENSOR_FFN_NORM);
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);
    graph_value both =
        blk_add(b, blk_attention(b, i, h, &(struct blk_attention){0}), blk_mamba2(b, i, h));

    x = blk_add(b, both, x);
    return blk_add(b, blk_swiglu(b, i, graph_rmsnorm(b->g, x, norm, b->hp->rms_eps, 0)), x);
}

const struct arch arch_falcon_h1 = {
    .name = "falcon-h1",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = kind,
    .layer = layer,
};
