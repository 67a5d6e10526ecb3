/*
 * gemma3: Gemma 3 (Gemma Team 2025, arXiv 2503.19786): a window in five of
 * six layers, whose RoPE has a base of its own and no scaling; head norms,
 * norms before and behind each part.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,         {KEY_FEED_FORWARD_LENGTH, true}, {KEY_SWA_WINDOW, false},
    {KEY_SWA_PATTERN, false}, {KEY_ROPE_BASE_SWA, false},      {KEY_FINAL_SOFT_CAP, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_GEMMA3,
};

/* The largest model, of 62 layers, scales by the width of the embedding over its heads. */
static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->embedding_scale = sqrtf((float)hp->n_embd);
    if (hp->n_layers == 62)
        hp->attention_scale = 1.0f / sqrtf((float)hp->n_embd / (float)hp->n_heads);
    return 0;
}

const struct arch arch_gemma3 = {
    .name = "gemma3",
    .rope = OP_ROPE_NEOX,
    .swa_unscaled = true,
    .swa_period = 6,
    .swa_rope_base = 10000.0f,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &blk_gemma3,
};
