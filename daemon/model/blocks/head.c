/* The exit: norm and output head, or the token table in its place.  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

void blk_head(struct build *b, graph_value x)
{
    const struct graph_weight *w = blk_weight(b, -1, TENSOR_OUTPUT);
    /* LFM2 keeps the norm before the output under the name of one behind the input. */
    bool has_norm = blk_weight(b, -1, TENSOR_OUTPUT_NORM)->t.fmt;
    enum tensor_name norm = has_norm ? TENSOR_OUTPUT_NORM : TENSOR_TOKEN_EMBD_NORM;

    if (!w->t.fmt)
        w = blk_weight(b, -1, TENSOR_TOKEN_EMBD);
    x = graph_rows(b->g, x);
    if (!b->m->arch->outer_norms)
        x = blk_norm(b, x, norm, -1);
    if (b->hp->pooling != POOLING_NONE) {
        graph_output(b->g, x);
        return;
    }
    x = graph_matmul1(b->g, x, w, blk_bias(b, -1, TENSOR_OUTPUT));
    if (b->hp->logit_scale != 1.0f)
        x = graph_scale(b->g, x, b->hp->logit_scale);
    if (b->hp->final_soft_cap > 0.0f)
        x = graph_softcap(b->g, x, b->hp->final_soft_cap);
    graph_output(b->g, x);
}
