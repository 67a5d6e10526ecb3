/*
 * qwen3next: Qwen3-Next (its published modelling code): as qwen35moe, but heads
 * that share a key lie side by side, rates and steps come in one matrix, and
 * RoPE has no sections.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_DELTA,
    {KEY_FEED_FORWARD_LENGTH, false},
    {KEY_EXPERT_COUNT, true},
    {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_FF, false},
    {KEY_SHARED_FF, false},
    {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_DELTA,
    MATRIX_IN(RECURRENT, SSM_BA, ALWAYS, DIM_EMBD, DIM_SSM_RANK2),
    TENSORS_EXPERTS_FUSED(ALWAYS),
    TENSORS_SHARED_GATED,
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_experts(hp, "qwen3next", err);

    if (!hp->n_ff_shexp)
        hp->n_ff_shexp = hp->n_ff;
    return r < 0 ? r : arch_check_delta(hp, "qwen3next", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    return blk_delta_mixture(b, i, x, true);
}

const struct arch arch_qwen3next = {
    .name = "qwen3next",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_delta,
    .layer = layer,
};
