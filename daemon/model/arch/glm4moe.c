/*
 * glm4moe: GLM-4.5 and 4.6 (Zeng et al. 2025, arXiv 2508.06471): RoPE over half
 * of a head, biases on q, k and v, head norms in the large ones, a sigmoid
 * router with a bias of the choice.  The norm behind attention is the one
 * before the feed-forward part under another name.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    {KEY_ROPE_SECTIONS, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_PROJECTIONS,
    BIAS(ATTN_Q, OPTIONAL, DIM_Q),
    BIAS(ATTN_K, OPTIONAL, DIM_K),
    BIAS(ATTN_V, OPTIONAL, DIM_V),
    VECTOR(ATTN_Q_NORM, OPTIONAL, DIM_HEAD),
    VECTOR(ATTN_K_NORM, OPTIONAL, DIM_HEAD),
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    int r = arch_check_text_sections(hp, "glm4moe", err);

    return r < 0 ? r : arch_check_mixture(hp, "glm4moe", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_glm4moe = {
    .name = "glm4moe",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.attention = {.qk_norm = true},
                                       .ffn_norm = TENSOR_ATTN_POST_NORM},
};
