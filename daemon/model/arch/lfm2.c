/*
 * lfm2: LFM2 (Liquid AI 2025, arXiv 2511.23404): gated short convolutions in most
 * layers, attention with QK-norm in the others.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_SHORTCONV, true},
    {KEY_FEED_FORWARD_LENGTH, true},
};

static const struct tensor_row tensors[] = {
    TENSORS_LFM2,
    TENSORS_FFN(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    (void)err;
    arch_size_shortconv(hp);
    return 0;
}

const struct arch arch_lfm2 = {
    .name = "lfm2",
    .rope = OP_ROPE_NEOX,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_by_heads,
    .layer = blk_shortconv_layer,
};
