/*
 * qwen35: Qwen3.5 (its published modelling code): three of four layers by the
 * gated delta rule (Yang et al. 2024, arXiv 2412.06464), the others gated
 * attention with QK-norm and RoPE in sections, which for text is plain RoPE.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_DELTA,
    {KEY_ROPE_SECTIONS, true},
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_DELTA,
    MATRIX_IN(RECURRENT, SSM_BETA, ALWAYS, DIM_EMBD, DIM_SSM_RANK),
    MATRIX_IN(RECURRENT, SSM_ALPHA, ALWAYS, DIM_EMBD, DIM_SSM_RANK),
    TENSORS_FFN(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_sections(hp, "qwen35", err);

    return r < 0 ? r : arch_check_delta(hp, "qwen35", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_delta_or_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), false);

    x = blk_add(b, x, h);
    return blk_add(b, x, blk_swiglu(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_POST_NORM, i)));
}

const struct arch arch_qwen35 = {
    .name = "qwen35",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_delta,
    .layer = layer,
};
