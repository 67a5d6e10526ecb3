/*
 * The lightning indexer of DeepSeek-V3.2 (arXiv 2512.02556, section 2): small
 * heads of their own score every position that a row sees, and attention keeps
 * to the best.  The published code turns queries and keys by one orthogonal
 * matrix before it rounds them to 8 bits; here they are not rounded to less than
 * the cache's format, and the turn, which leaves their products as they are, is
 * left out.  See blocks.h.
 */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

#define NORM_EPS 1e-6f /* of the keys' layer norm, which no file says */

int blk_indexer_check(struct hparams *hp, const char *name, struct err *err)
{
    if (!hp->layers[0].indexer)
        return err_set(err, ERR_FORMAT,
                       "'%s.attention.indexer.types' leaves the first layer without an indexer",
                       name);
    if (!hp->absorbed || !hp->n_q_lora)
        return err_set(err, ERR_UNSUPPORTED,
                       "'%s' has an indexer, which needs '%s.attention.q_lora_rank' and the "
                       "lengths of expanded heads",
                       name, name);
    if (hp->index_dim < hp->n_rot)
        return err_set(err, ERR_FORMAT, "RoPE over %u values is wider than an indexer's head of %u",
                       hp->n_rot, hp->index_dim);
    hp->indexer = true;
    return 0;
}

graph_value blk_indexer(struct build *b, int layer, graph_value x, graph_value q_latent)
{
    const struct hparams *hp = b->hp;
    enum op_rope rope = b->m->arch->indexer_rope;
    unsigned dim = hp->index_dim, n_heads = hp->n_index_heads;
    const struct graph_weight *w[2] = {blk_weight(b, layer, TENSOR_INDEXER_K),
                                       blk_weight(b, layer, TENSOR_INDEXER_PROJ)};
    graph_value q, k[2];

    q = graph_matmul1(b->g, q_latent, blk_weight(b, layer, TENSOR_INDEXER_Q), NULL);
    graph_rope(b->g, q, b->rope, rope, hp->n_rot, dim);
    graph_matmul(b->g, x, 2, w, NULL, k);
    k[0] = graph_layernorm(b->g, k[0], blk_weight(b, layer, TENSOR_INDEXER_K_NORM),
                           blk_bias(b, layer, TENSOR_INDEXER_K_NORM), NORM_EPS, 0);
    graph_rope(b->g, k[0], b->rope, rope, hp->n_rot, dim);
    graph_index_store(b->g, k[0], dim);
    return graph_indexer(b->g, q, k[1],
                         &(struct op_indexer_params){.n_heads = n_heads,
                                                     .head_dim = dim,
                                                     .scale = 1.0f / sqrtf((float)(n_heads * dim))},
                         (unsigned)MIN((size_t)hp->index_top_k, b->n_ctx));
}
