/*
 * Hyper-connections (Zhu et al. 2024, arXiv 2409.19606; with a doubly stochastic
 * matrix, Xie et al. 2025, arXiv 2512.24880).  See blocks.h.
 */

#include "daemon/model/blocks/blocks.h"

/* The numbers of a mix, from all streams as one normed row; base and scale stand behind fn in names.def. */
static graph_value mix_of(struct build *b, int layer, graph_value streams, enum tensor_name fn)
{
    const struct hparams *hp = b->hp;
    graph_value x = graph_rmsnorm(b->g, streams, NULL, hp->rms_eps, 0);

    x = graph_matmul1(b->g, x, blk_weight(b, layer, fn), NULL);
    return graph_hyper_mix(b->g, x, blk_weight(b, layer, fn + 2), blk_weight(b, layer, fn + 1),
                           &(struct op_hyper_params){.n = hp->n_streams,
                                                     .n_iter = hp->n_sinkhorn,
                                                     .eps = hp->stream_eps});
}

graph_value blk_enter(struct build *b, int layer, graph_value streams, enum tensor_name fn,
                      graph_value *ret_mix)
{
    *ret_mix = mix_of(b, layer, streams, fn);
    return graph_hyper_in(b->g, streams, *ret_mix, b->hp->n_streams);
}

graph_value blk_leave(struct build *b, graph_value streams, graph_value y, graph_value mix)
{
    return graph_hyper_out(b->g, streams, y, mix, b->hp->n_streams);
}

graph_value blk_streams(struct build *b, graph_value x)
{
    size_t n = b->hp->n_embd;
    graph_value y = x;

    for (size_t i = 1; i < b->hp->n_streams; i++)
        y = graph_join(b->g, y, i * n, x, n);
    return y;
}

graph_value blk_one_stream(struct build *b, graph_value streams)
{
    graph_value mix;

    return blk_enter(b, -1, streams, TENSOR_HYPER_HEAD, &mix);
}
