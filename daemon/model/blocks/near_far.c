/* Attention to near positions one by one and to far ones by groups.  See blocks.h. */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

/* Which tensors make keys of groups: those of attention, or those of an indexer. */
struct maker {
    enum tensor_name x, score, place, norm;
    unsigned dim, column;
    bool index;
};

static void compress(struct build *b, int layer, graph_value x, const struct maker *m)
{
    const struct graph_weight *w[2] = {blk_weight(b, layer, m->x), blk_weight(b, layer, m->score)};
    struct graph_compress c = {.place = blk_weight(b, layer, m->place),
                               .norm = blk_weight(b, layer, m->norm),
                               .index = m->index,
                               .p = {.rope = blk_rope_params(b, false),
                                     .group = b->hp->layers[layer].group,
                                     .dim = m->dim,
                                     .column = m->column,
                                     .overlap = b->hp->layers[layer].indexer,
                                     .eps = b->hp->rms_eps}};
    graph_value both[2];

    graph_matmul(b->g, x, 2, w, NULL, both);
    c.x = both[0];
    c.score = both[1];
    graph_compress(b->g, &c);
}

/* The groups that each row attends to, by index keys of the groups. */
static graph_value choose(struct build *b, int layer, graph_value x, graph_value q_latent)
{
    const struct hparams *hp = b->hp;
    unsigned dim = hp->index_dim, n_heads = hp->n_index_heads, group = hp->layers[layer].group;
    graph_value q = graph_matmul1(b->g, q_latent, blk_weight(b, layer, TENSOR_INDEXER_Q), NULL);
    graph_value w = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_INDEXER_PROJ), NULL);
    size_t most = MAX(b->n_ctx / group, (size_t)1);

    graph_rope_part(b->g, q, b->rope, b->m->arch->rope, hp->n_rot, dim, dim - hp->n_rot);
    return graph_indexer(b->g, q, w,
                         &(struct op_indexer_params){.n_heads = n_heads,
                                                     .head_dim = dim,
                                                     .scale = 1.0f / sqrtf((float)(n_heads * dim)),
                                                     .group = group},
                         (unsigned)MIN((size_t)hp->index_top_k, most));
}

/* Parts of the output go through latents of their own. */
static graph_value leave(struct build *b, int layer, graph_value y)
{
    y = graph_heads(b->g, y, blk_weight(b, layer, TENSOR_ATTN_OUT_A));
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_ATTN_OUT_B), NULL);
}

static graph_value attend(struct build *b, int layer, graph_value x, graph_value q,
                          graph_value q_latent)
{
    const struct hparams *hp = b->hp;
    const struct hparams_layer *y = &hp->layers[layer];
    struct graph_attention a = {.n_heads = y->n_heads,
                                .n_kv_heads = 1,
                                .head_dim = hp->head_dim,
                                .v_dim = hp->head_dim,
                                .window = hp->n_swa,
                                .scale = 1.0f / sqrtf((float)hp->head_dim),
                                .sinks = blk_weight(b, layer, TENSOR_ATTN_SINKS)};
    struct maker keys = {TENSOR_COMPRESS_KV,
                         TENSOR_COMPRESS_GATE,
                         TENSOR_COMPRESS_PLACE,
                         TENSOR_COMPRESS_NORM,
                         hp->head_dim,
                         0,
                         false};
    struct maker index = {TENSOR_INDEXER_KV,
                          TENSOR_INDEXER_GATE,
                          TENSOR_INDEXER_PLACE,
                          TENSOR_INDEXER_NORM,
                          hp->index_dim,
                          4 * hp->head_dim,
                          true};
    graph_value chosen = GRAPH_NONE;

    if (!(y->kind & LAYER_GROUPS))
        return graph_attention(b->g, q, &a);
    compress(b, layer, x, &keys);
    if (y->indexer) {
        compress(b, layer, x, &index);
        chosen = choose(b, layer, x, q_latent);
    }
    return graph_near_far(b->g, q, chosen, y->group, &a);
}

graph_value blk_near_far(struct build *b, int layer, graph_value x)
{
    const struct hparams *hp = b->hp;
    enum op_rope type = b->m->arch->rope;
    unsigned dim = hp->head_dim, n_rot = hp->n_rot;
    bool groups = hp->layers[layer].kind & LAYER_GROUPS;
    const struct graph_weight *w[2] = {blk_weight(b, layer, TENSOR_ATTN_Q_A),
                                       blk_weight(b, layer, TENSOR_ATTN_KV)};
    graph_value in[2], q, latent, k, y;

    graph_matmul(b->g, x, 2, w, NULL, in);
    latent = blk_rmsnorm(b, in[0], TENSOR_ATTN_Q_A_NORM, layer);
    q = graph_matmul1(b->g, latent, blk_weight(b, layer, TENSOR_ATTN_Q_B), NULL);
    q = graph_rmsnorm(b->g, q, NULL, hp->rms_eps, dim);
    graph_rope_part(b->g, q, groups ? b->rope : b->rope_swa, type, n_rot, dim, dim - n_rot);
    k = blk_rmsnorm(b, in[1], TENSOR_ATTN_KV_A_NORM, layer);
    graph_rope_part(b->g, k, groups ? b->rope : b->rope_swa, type, n_rot, dim, dim - n_rot);
    graph_kv_store(b->g, k, GRAPH_NONE, 1, dim, dim);
    y = attend(b, layer, x, q, latent);
    graph_rope_part(b->g, y, b->rope_back[!groups], type, n_rot, dim, dim - n_rot);
    return leave(b, layer, blk_last(b, layer, y));
}
