/*
 * Layers of dense families: norms before each part (Xiong et al. 2020, arXiv
 * 2002.04745), behind it, or both; parts in a row or side by side.  See
 * blocks.h.
 */

#include "daemon/model/blocks/blocks.h"

static graph_value scaled(struct build *b, graph_value x)
{
    return b->hp->residual_scale == 1.0f ? x : graph_scale(b->g, x, b->hp->residual_scale);
}

graph_value blk_layer(struct build *b, int i, graph_value x, const struct blk_layer *opt)
{
    graph_value h = blk_attention(b, i, blk_norm(b, x, TENSOR_ATTN_NORM, i), &opt->attention);

    if (opt->post_norms)
        h = blk_norm(b, h, TENSOR_ATTN_POST_NORM, i);
    x = blk_add(b, x, scaled(b, h));
    h = blk_norm(b, x, opt->ffn_norm, i);
    if (b->hp->layers[i].kind & LAYER_MOE)
        h = blk_mixture(b, i, h);
    else
        h = blk_ffn(b, i, h, opt->act);
    if (opt->post_norms)
        h = blk_norm(b, h, TENSOR_FFN_POST_NORM, i);
    return blk_add(b, x, scaled(b, h));
}

graph_value blk_layer_post(struct build *b, int i, graph_value x, const struct blk_layer *opt)
{
    graph_value h = blk_attention(b, i, x, &opt->attention);

    x = blk_add(b, x, blk_norm(b, h, TENSOR_ATTN_POST_NORM, i));
    h = blk_ffn(b, i, x, opt->act);
    return blk_add(b, x, blk_norm(b, h, TENSOR_FFN_POST_NORM, i));
}

graph_value blk_layer_outer(struct build *b, int i, graph_value x, const struct blk_layer *opt)
{
    x = blk_norm(b, blk_add(b, x, blk_attention(b, i, x, &opt->attention)), TENSOR_ATTN_OUT_NORM,
                 i);
    return blk_norm(b, blk_add(b, x, blk_ffn(b, i, x, opt->act)), TENSOR_LAYER_OUT_NORM, i);
}

graph_value blk_layer_parallel(struct build *b, int i, graph_value x, const struct blk_layer *opt)
{
    bool two = model_weight(b->m, i, TENSOR_ATTN_NORM_2, PART_WEIGHT)->t.fmt != NULL;
    graph_value normed = blk_norm(b, x, TENSOR_ATTN_NORM, i);
    graph_value h =
        blk_attention(b, i, two ? blk_norm(b, x, TENSOR_ATTN_NORM_2, i) : normed, &opt->attention);

    x = blk_add(b, x, h);
    return blk_add(b, x, blk_ffn(b, i, blk_last(b, i, normed), opt->act));
}

graph_value blk_plain_layer(struct build *b, int i, graph_value x)
{
    return blk_layer(b, i, x, &(struct blk_layer){.ffn_norm = TENSOR_FFN_NORM});
}

graph_value blk_gemma3_layer(struct build *b, int i, graph_value x)
{
    return blk_layer(b, i, x,
                     &(struct blk_layer){.attention = {.qk_norm = true},
                                         .act = OP_ACT_GELU,
                                         .post_norms = true,
                                         .ffn_norm = TENSOR_FFN_NORM});
}
