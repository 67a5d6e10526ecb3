/*
 * gemma2: Gemma 2 (Gemma Team 2024, arXiv 2408.00118): a window in every
 * other layer, norms before and behind each part, soft caps on attention and
 * on the logits.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_SWA_WINDOW, false},
    {KEY_SWA_PATTERN, false},
    {KEY_ROPE_BASE_SWA, false},
    {KEY_ATTN_SOFT_CAP, false},
    {KEY_FINAL_SOFT_CAP, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    TENSORS_ATTENTION,
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

/* The largest model, of 46 layers, scales by the width of the embedding over its heads. */
static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    hp->embedding_scale = sqrtf((float)hp->n_embd);
    if (hp->n_layers == 46)
        hp->attention_scale = 1.0f / sqrtf((float)hp->n_embd / (float)hp->n_heads);
    if (!hp->has[KEY_ATTN_SOFT_CAP])
        hp->attn_soft_cap = 50.0f;
    if (!hp->has[KEY_FINAL_SOFT_CAP])
        hp->final_soft_cap = 30.0f;
    return 0;
}

const struct arch arch_gemma2 = {
    .name = "gemma2",
    .rope = OP_ROPE_NEOX,
    .swa_window = 4096,
    .swa_period = 2,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = blk_plain_layer,
    .parts = &(const struct blk_layer){.act = OP_ACT_GELU, .post_norms = true},
};
