/*
 * glm-dsa: GLM-5 to 5.2 (Z.ai 2026, model cards and modelling code): deepseek32
 * whose index keys rotate by neighbours; from 5.2 on most layers take the
 * choice of positions from an earlier one.
 */

#include "daemon/model/blocks/blocks.h"

/* From this context on a file that does not say shares choices as GLM-5.2 does. */
#define CTX_SHARED 1048576

static const struct key_row keys[] = {
    KEYS_TRANSFORMER, KEYS_MIXTURE, KEYS_MLA, KEYS_INDEXER, {KEY_INDEX_TYPES, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB), TENSORS_MLA, TENSORS_INDEXER,
    TENSORS_MIXTURE,
};

static int check(struct hparams *hp, struct err *err)
{
    for (uint32_t i = 0; i < hp->n_layers && !hp->has[KEY_INDEX_TYPES]; i++)
        hp->layers[i].indexer = hp->n_ctx_train < CTX_SHARED || i < 3 || (i - 2) % 4 == 0;
    if (blk_mla_check(hp, "glm-dsa", false, err) < 0)
        return -ERR_FORMAT;
    if (blk_indexer_check(hp, "glm-dsa", err) < 0)
        return -ERR_FORMAT;
    return arch_check_mixture(hp, "glm-dsa", EXPERT_GATING_SIGMOID, err);
}

const struct arch arch_glm_dsa = {
    .name = "glm-dsa",
    .rope = OP_ROPE_NORM,
    .indexer_rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_mla_layer,
};
