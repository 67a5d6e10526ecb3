/*
 * gemma-embedding: EmbeddingGemma (Schechter Vera et al. 2025, arXiv
 * 2509.20354): gemma3 as an encoder; a window reaches half to either side.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,         {KEY_FEED_FORWARD_LENGTH, true}, {KEY_SWA_WINDOW, true},
    {KEY_SWA_PATTERN, false}, {KEY_ROPE_BASE_SWA, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    TENSORS_GEMMA3,
};

static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->embedding_scale = sqrtf((float)hp->n_embd);
    return 0;
}

const struct arch arch_gemma_embedding = {
    .name = "gemma-embedding",
    .rope = OP_ROPE_NEOX,
    .swa_unscaled = true,
    .swa_period = 6,
    .swa_rope_base = 10000.0f,
    .encoder = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &blk_gemma3,
};
