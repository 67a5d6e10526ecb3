/*
 * gemma: Gemma 1 (Gemma Team 2024, arXiv 2403.08295): embeddings times the
 * root of their width, RoPE on halves, heads of a width of their own, GeGLU.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    TENSORS_ATTENTION,
    TENSORS_FFN(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->embedding_scale = sqrtf((float)hp->n_embd);
    return 0;
}

const struct arch arch_gemma = {
    .name = "gemma",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU},
};
