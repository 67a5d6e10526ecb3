/*
 * glm4: GLM-4-0414 (Zeng et al. 2024, arXiv 2406.12793): norms before and
 * behind each part, RoPE over half of each head, gate and up in one tensor.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_NEXTN_LAYERS, false},
    {KEY_ROPE_SECTIONS, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    TENSORS_QKV_BIAS(OPTIONAL),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD),
    MATRIX(FFN_UP, ALWAYS, DIM_EMBD, DIM_GATE_UP),
    MATRIX(FFN_DOWN, ALWAYS, DIM_FF, DIM_EMBD),
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_text_sections(hp, "glm4", err);
}

const struct arch arch_glm4 = {
    .name = "glm4",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.post_norms = true},
};
