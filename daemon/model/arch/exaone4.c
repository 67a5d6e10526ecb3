/*
 * exaone4: EXAONE 4.0 (LG AI Research 2025, arXiv 2507.11407): norms behind
 * each part and none before, head norms; in the large model a window in three
 * of four layers, and RoPE in those alone.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,        {KEY_FEED_FORWARD_LENGTH, true}, {KEY_NEXTN_LAYERS, false},
    {KEY_SWA_WINDOW, false}, {KEY_SWA_PATTERN, false},        {KEY_ROPE_BASE_SWA, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_PROJECTIONS,
    VECTOR(ATTN_Q_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_K_NORM, ALWAYS, DIM_HEAD),
    VECTOR(ATTN_POST_NORM, ALWAYS, DIM_EMBD),
    VECTOR(FFN_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_FFN(ALWAYS),
};

static graph_value layer(struct build *b, int i, graph_value x)
{
    bool no_rope = b->hp->n_swa && !(b->hp->layers[i].kind & LAYER_WINDOW);

    return blk_layer_post(b, i, x,
                          &(struct blk_layer){.attention = {.qk_norm = true, .no_rope = no_rope}});
}

const struct arch arch_exaone4 = {
    .name = "exaone4",
    .rope = OP_ROPE_NEOX,
    .swa_period = 4,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = layer,
};
