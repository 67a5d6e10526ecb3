/*
 * mistral3: Ministral 3 and Mistral Small 3 (Mistral AI 2025): llama whose
 * queries grow with their position, and whose YaRN leaves the length of a
 * rotation as it is.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_ATTENTION_SCALE, false},
    {KEY_TEMPERATURE_SCALE, false},
    {KEY_YARN_LOG_MULTIPLIER, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    TENSORS_QKV_BIAS(OPTIONAL),
    BIAS(ATTN_OUT, OPTIONAL, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

/* YaRN's magnitude, 1 + 0.1 ln(factor), over the same with the multiplier. */
static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    if (hp->rope_scaling == ROPE_SCALING_YARN && hp->has[KEY_YARN_LOG_MULTIPLIER])
        hp->yarn_attn_factor /= 1.0f + 0.1f * hp->yarn_log_multiplier * logf(hp->rope_factor);
    return 0;
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    return blk_layer(b, i, x,
                     &(struct blk_layer){.attention = {.temperature = b->hp->temperature_scale,
                                                       .step = b->hp->n_ctx_orig}});
}

const struct arch arch_mistral3 = {
    .name = "mistral3",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
