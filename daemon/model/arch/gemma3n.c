/*
 * gemma3n: Gemma 3n (Google DeepMind 2025; its published modelling code):
 * alternating updates of several streams, a residual of low rank beside
 * attention (LAuReL, Menghani et al. 2024, arXiv 2411.07501), a sparse gate in
 * the first layers, embeddings of each layer's own, and last layers that read
 * the keys and values of earlier ones.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/* Of both published sizes: layers whose gate is sparse, and the deviations that leave 5 % of it. */
#define SPARSE_LAYERS 10
#define DEVIATIONS    1.6448536f

static const struct key_row keys[] = {
    KEYS_TRANSFORMER,
    {KEY_FEED_FORWARD_LENGTH, true},
    {KEY_SWA_WINDOW, true},
    {KEY_SWA_PATTERN, false},
    {KEY_ROPE_BASE_SWA, false},
    {KEY_SHARED_KV_LAYERS, true},
    {KEY_EMBEDDING_PER_LAYER, true},
    {KEY_FINAL_SOFT_CAP, false},
    {KEY_ALTUP_INPUTS, false},
    {KEY_ALTUP_ACTIVE, false},
};

static const struct tensor_row tensors[] = {
    TENSORS_ENDS,
    MATRIX(OUTPUT, OPTIONAL, DIM_EMBD, DIM_VOCAB),
    TENSORS_OWN_TABLES(ALWAYS),
    MATRIX(ALTUP_PROJ, ALWAYS, DIM_EMBD, DIM_EMBD, DIM_STREAMS_REST),
    MATRIX(ALTUP_UNEMBD_PROJ, ALWAYS, DIM_EMBD, DIM_EMBD, DIM_STREAMS_REST),
    VECTOR(ALTUP_ROUTER_NORM, ALWAYS, DIM_EMBD),
    MATRIX(ALTUP_ROUTER, ALWAYS, DIM_EMBD, DIM_STREAMS),
    MATRIX(ALTUP_PREDICT_COEF, ALWAYS, DIM_STREAMS, DIM_STREAMS_SQUARE),
    MATRIX(ALTUP_CORRECT_COEF, ALWAYS, DIM_STREAMS, DIM_STREAMS),
    VECTOR(ALTUP_CORRECT_SCALE, ALWAYS, DIM_EMBD),
    MATRIX(LAUREL_L, ALWAYS, DIM_EMBD, DIM_LAUREL),
    MATRIX(LAUREL_R, ALWAYS, DIM_LAUREL, DIM_EMBD),
    VECTOR(LAUREL_POST_NORM, ALWAYS, DIM_EMBD),
    TENSORS_SHARING(ALWAYS),
    /* Files have them in layers that read those of another too; nobody reads these. */
    MATRIX_IN(SHARED, ATTN_K, OPTIONAL, DIM_EMBD, DIM_K),
    MATRIX_IN(SHARED, ATTN_V, OPTIONAL, DIM_EMBD, DIM_V),
    VECTOR_IN(SHARED, ATTN_K_NORM, OPTIONAL, DIM_HEAD),
    TENSORS_OWN(ALWAYS),
};

static int check(struct hparams *hp, struct err *err)
{
    if (!hp->n_embd_layer)
        return err_set(err, ERR_FORMAT,
                       "'gemma3n.embedding_length_per_layer_input' is 0, but every layer of "
                       "'gemma3n' has an embedding of its own");
    hp->embedding_scale = sqrtf((float)hp->n_embd);
    hp->attention_scale = 1.0f;
    if (!hp->has[KEY_ALTUP_INPUTS])
        hp->n_streams = 4;
    if (!hp->has[KEY_FINAL_SOFT_CAP])
        hp->final_soft_cap = 30.0f;
    return arch_check_shared(hp, "gemma3n", err);
}

/* Attention and the residual of low rank, both of the norm of x. */
static graph_value attend(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);
    graph_value low =
        graph_matmul1(b->g, blk_last(b, i, h), blk_weight(b, i, TENSOR_LAUREL_L), NULL);

    low = graph_matmul1(b->g, low, blk_weight(b, i, TENSOR_LAUREL_R), NULL);
    low = graph_add(b->g, blk_rmsnorm(b, low, TENSOR_LAUREL_POST_NORM, i), h);
    h = blk_attention(b, i, h, &(struct blk_attention){.qk_norm = true, .v_norm = true});
    x = graph_add(b->g, x, blk_rmsnorm(b, h, TENSOR_ATTN_POST_NORM, i));
    return graph_scale(b->g, graph_add(b->g, x, low), 1.0f / sqrtf(2.0f));
}

static graph_value feed(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_FFN_NORM, i);

    h = i < SPARSE_LAYERS ? blk_ffn_above(b, i, h, OP_ACT_GELU, DEVIATIONS)
                          : blk_ffn(b, i, h, OP_ACT_GELU);
    return blk_rmsnorm(b, h, TENSOR_FFN_POST_NORM, i);
}

/* The layer's own embedding goes to all streams but the first, by which it is gated. */
static graph_value add_own(struct build *b, int i, graph_value streams, graph_value own)
{
    size_t n = b->hp->n_embd, all = b->hp->n_streams * n;
    graph_value first = blk_altup_first(b, streams);
    graph_value rest = blk_altup_rest(b, streams);
    graph_value h = graph_scale_by(b->g, first, blk_weight(b, i, TENSOR_ALTUP_CORRECT_SCALE));
    graph_value more;

    h = more = blk_own(b, i, h, own);
    for (size_t at = n; at < all - n; at += n)
        more = graph_join(b->g, more, at, h, n);
    return graph_join(b->g, first, n, graph_add(b->g, rest, more), all - n);
}

static graph_value layer(struct build *b, int i, graph_value x)
{
    graph_value own = blk_own_embedding(b, i), h;

    x = blk_altup_predict(b, i, i == 0 ? blk_altup_split(b, x) : x);
    h = attend(b, i, blk_altup_first(b, x));
    h = graph_add(b->g, h, feed(b, i, h));
    x = blk_altup_correct(b, i, x, h);
    x = add_own(b, i, x, own);
    return i == (int)b->hp->n_layers - 1 ? blk_altup_mean(b, x) : x;
}

const struct arch arch_gemma3n = {
    .name = "gemma3n",
    .rope = OP_ROPE_NEOX,
    .swa_unscaled = true,
    .swa_period = 5,
    .swa_rope_base = 10000.0f,
    .keys = keys,
    .n_keys = ARRAY_LEN(keys),
    .tensors = tensors,
    .n_tensors = ARRAY_LEN(tensors),
    .kind = arch_kind_shared,
    .check = check,
    .layer = layer,
};
