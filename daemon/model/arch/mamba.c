/*
 * mamba: Mamba (Gu and Dao 2023, arXiv 2312.00752): a selective state space in
 * every layer and nothing else.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_SSM_ALONE,
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA,
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_mamba(hp, "mamba", err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    return blk_add(b, x, blk_mamba(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i)));
}

const struct arch arch_mamba = {
    .name = "mamba",
    .rope = OP_ROPE_NEOX,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_recurrent,
    .layer = layer,
};
