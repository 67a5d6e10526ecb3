/*
 * qwen35moe: Qwen3.5's and 3.6's mixtures: qwen35 with experts, softmax over all of
 * them, the chosen ones scaled to a sum of 1, and a shared expert behind a
 * sigmoid gate.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,          KEYS_DELTA,
    {KEY_ROPE_SECTIONS, true}, {KEY_FEED_FORWARD_LENGTH, false},
    {KEY_EXPERT_COUNT, true},  {KEY_EXPERT_USED_COUNT, true},
    {KEY_EXPERT_FF, false},    {KEY_SHARED_FF, false},
    {KEY_EXPERT_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_DELTA,
    MATRIX_IN(RECURRENT, SSM_BETA, ALWAYS, DIM_EMBD, DIM_SSM_RANK),
    MATRIX_IN(RECURRENT, SSM_ALPHA, ALWAYS, DIM_EMBD, DIM_SSM_RANK),
    TENSORS_EXPERTS_FUSED(ALWAYS),
    TENSORS_SHARED_GATED,
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_experts(hp, "qwen35moe", err);

    if (!hp->n_ff_shexp)
        hp->n_ff_shexp = hp->n_ff;
    if (r >= 0)
        r = arch_check_sections(hp, "qwen35moe", err);
    return r < 0 ? r : arch_check_delta(hp, "qwen35moe", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    return blk_delta_mixture(b, i, x, false);
}

const struct arch arch_qwen35moe = {
    .name = "qwen35moe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_delta,
    .layer = layer,
};
