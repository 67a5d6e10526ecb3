/*
 * mamba2: Mamba-2 and Codestral Mamba (Dao and Gu 2024, arXiv 2405.21060): a state
 * space in every layer and nothing else.
 */

#include "daemon/model/blocks/blocks.h"

static const struct key_row keys[] = {
    KEYS_SSM_ALONE,
    {KEY_SSM_GROUPS, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ATTN_NORM, ALWAYS, DIM_EMBD),
    TENSORS_MAMBA2,
};

static int check(struct hparams *hp, struct err *err)
{
    return arch_check_mamba2(hp, "mamba2", err);
}

const struct arch arch_mamba2 = {
    .name = "mamba2",
    .rope = OP_ROPE_NEOX,
    .no_rope = true,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .kind = arch_kind_recurrent,
    .layer = blk_one_part_layer,
};
