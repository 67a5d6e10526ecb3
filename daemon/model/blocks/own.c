/* Embeddings that each layer has for itself (Gemma 3n, Gemma 4).  See blocks.h. */

#include <math.h>

#include "daemon/model/blocks/blocks.h"

graph_value blk_own_embedding(struct build *b, int layer)
{
    size_t n = b->hp->n_embd_layer, at = (size_t)layer * n;
    struct graph_weight proj = graph_weight_rows(blk_weight(b, -1, TENSOR_LAYERS_PROJ), at, n);
    struct graph_weight table = graph_weight_columns(blk_weight(b, -1, TENSOR_LAYERS_EMBD), at, n);
    graph_value x = graph_matmul1(b->g, b->embedded, &proj, NULL);

    x = graph_scale(b->g, x, 1.0f / sqrtf((float)b->hp->n_embd));
    x = blk_rmsnorm(b, x, TENSOR_LAYERS_NORM, -1);
    x = graph_add(b->g, x, graph_embed(b->g, &table, sqrtf((float)n)));
    return blk_last(b, layer, graph_scale(b->g, x, 1.0f / sqrtf(2.0f)));
}

graph_value blk_own(struct build *b, int layer, graph_value x, graph_value own)
{
    graph_value h = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_LAYER_GATE), NULL);

    h = graph_glu(b->g, OP_ACT_GELU, h, own);
    h = graph_matmul1(b->g, h, blk_weight(b, layer, TENSOR_LAYER_PROJ), NULL);
    return blk_rmsnorm(b, h, TENSOR_LAYER_POST_NORM, layer);
}
