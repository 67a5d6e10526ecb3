/*
 * smollm3: SmolLM3 (Hugging Face 2025): llama without RoPE in every fourth
 * layer (Yang et al. 2025, arXiv 2501.18795).
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_ATTENTION,
    TENSORS_FFN(ALWAYS),
};

static graph_value layer(struct build *b, int i, graph_value x)
{
    return blk_layer(b, i, x, &(struct blk_layer){.attention = {.no_rope = (i + 1) % 4 == 0}});
}

const struct arch arch_smollm3 = {
    .name = "smollm3",
    .rope = OP_ROPE_NORM,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .layer = layer,
};
