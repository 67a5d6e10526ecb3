/*
 * llama4: Llama 4 Scout and Maverick (Meta 2025, model card and modelling code):
 * three of four layers rotate and attend within chunks of 8192 positions, the
 * fourth sees all, without RoPE, by queries that grow with their position; one
 * expert, which weighs its input, and a shared one.
 */

#include "daemon/model/blocks/blocks.h"

#define CHUNK             8192
#define N_EXPERT_UNNORMED 128 /* Maverick does not norm its queries and keys */

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    KEYS_MIXTURE,
    {KEY_MOE_STEP, true},
    {KEY_SWA_WINDOW, false},
    {KEY_SWA_PATTERN, false},
    {KEY_ROPE_BASE_SWA, false},
    {KEY_ATTENTION_SCALE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    VECTOR(ROPE_FREQS, OPTIONAL, DIM_ROT_HALF),
    TENSORS_ATTENTION,
    TENSORS_FFN(DENSE),
    TENSORS_EXPERTS(MOE),
    TENSORS_SHARED,
};

static int check(struct hparams *hp, struct err *err)
{
    if (hp->has[KEY_SWA_WINDOW] && hp->n_swa)
        hp->n_swa = CHUNK; /* whatever the file says */
    hp->n_shared = 1;
    hp->expert_norm = false;
    return arch_check_mixture(hp, "llama4", EXPERT_GATING_SIGMOID_CHOSEN, err);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    const struct hparams *hp = b->hp;
    bool rotates = !hp->n_swa || hp->layers[i].kind & LAYER_WINDOW;
    struct blk_attention a = {.chunked = true, .no_rope = !rotates};
    graph_value h, shared;

    if (rotates && hp->n_expert != N_EXPERT_UNNORMED)
        a.qk_norm = a.norm_late = a.norm_bare = true;
    if (!rotates) {
        a.temperature = 0.1f;
        a.step = CHUNK;
        a.offset = 1;
    }
    h = blk_attention(b, i, blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i), &a);
    x = blk_add(b, x, h);
    h = blk_rmsnorm(b, x, TENSOR_FFN_NORM, i);
    if (!(hp->layers[i].kind & LAYER_MOE))
        return blk_add(b, x, blk_swiglu(b, i, h));
    shared = blk_ffn_shared(b, i, h, OP_ACT_SILU);
    h = blk_moe(b, i, h, &(struct blk_moe){.weigh_first = true});
    return blk_add(b, x, blk_add(b, h, shared));
}

const struct arch arch_llama4 = {
    .name = "llama4",
    .rope = OP_ROPE_NORM,
    .swa_window = CHUNK,
    .swa_period = 4,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .check = check,
    .layer = layer,
};
