/* Alternating updates (Baykal et al. 2023, arXiv 2301.13310).  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

graph_value blk_altup_first(struct build *b, graph_value streams)
{
    size_t n = b->hp->n_embd;

    return graph_slice(b->g, streams, 0, n, b->hp->n_streams * n);
}

graph_value blk_altup_rest(struct build *b, graph_value streams)
{
    size_t n = b->hp->n_embd, all = b->hp->n_streams * n;

    return graph_slice(b->g, streams, n, all - n, all);
}

graph_value blk_altup_split(struct build *b, graph_value x)
{
    size_t n = b->hp->n_embd;
    /* One matrix for all of them: they have the same input. */
    struct graph_weight w = graph_weight_flat(blk_weight(b, -1, TENSOR_ALTUP_PROJ), n);
    graph_value rest = graph_magnitude(b->g, graph_matmul1(b->g, x, &w, NULL), x);

    return graph_join(b->g, x, n, rest, (b->hp->n_streams - 1) * n);
}

/* Numbers by which streams are mixed, as a small router has them of the first. */
static graph_value shares_of(struct build *b, int layer, graph_value first, enum tensor_name name)
{
    graph_value x = blk_rmsnorm(b, first, TENSOR_ALTUP_ROUTER_NORM, layer);

    x = graph_scale(b->g, x, 1.0f / (float)b->hp->n_embd);
    x = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_ALTUP_ROUTER), NULL);
    x = graph_softcap(b->g, x, 1.0f); /* tanh */
    return graph_matmul1(b->g, x, blk_weight(b, layer, name), NULL);
}

graph_value blk_altup_predict(struct build *b, int layer, graph_value streams)
{
    graph_value shares =
        shares_of(b, layer, blk_altup_first(b, streams), TENSOR_ALTUP_PREDICT_COEF);

    return graph_predict(b->g, streams, shares, b->hp->n_streams);
}

graph_value blk_altup_correct(struct build *b, int layer, graph_value streams, graph_value first)
{
    graph_value shares = shares_of(b, layer, first, TENSOR_ALTUP_CORRECT_COEF);

    return graph_correct(b->g, streams, first, shares, b->hp->n_streams);
}

graph_value blk_altup_mean(struct build *b, graph_value streams)
{
    size_t n = b->hp->n_embd, n_rest = b->hp->n_streams - 1;
    graph_value first = blk_altup_first(b, streams), sum = first;
    graph_value rest =
        graph_heads(b->g, blk_altup_rest(b, streams), blk_weight(b, -1, TENSOR_ALTUP_UNEMBD_PROJ));

    rest = graph_magnitude(b->g, rest, first);
    for (size_t s = 0; s < n_rest; s++)
        sum = graph_add(b->g, sum, graph_slice(b->g, rest, s * n, n, n_rest * n));
    return graph_scale(b->g, sum, 1.0f / (float)b->hp->n_streams);
}
