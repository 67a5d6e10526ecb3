/*
 * Layers of dense families: norms before each part (Xiong et al. 2020, arXiv
 * 2002.04745), behind it, or both; parts in a row or side by side.  See
 * blocks.h.
 */

#include "daemon/model/blocks/blocks.h"

graph_value blk_residual(struct build *b, graph_value x)
{
    return b->hp->residual_scale == 1.0f ? x : graph_scale(b->g, x, b->hp->residual_scale);
}

graph_value blk_layer(struct build *b, int i, graph_value x, const struct blk_layer *opt)
{
    graph_value h = blk_attention(b, i, blk_norm(b, x, TENSOR_ATTN_NORM, i), &opt->attention);

    if (opt->post_norms)
        h = blk_norm(b, h, TENSOR_ATTN_POST_NORM, i);
    x = blk_add(b, x, blk_residual(b, h));
    h = blk_norm(b, x, opt->ffn_norm ? opt->ffn_norm : TENSOR_FFN_NORM, i);
    h = blk_mixture_of(b, i, h, opt->act);
    if (opt->post_norms)
        h = blk_norm(b, h, TENSOR_FFN_POST_NORM, i);
    return blk_add(b, x, blk_residual(b, h));
}

graph_value blk_layer_post(struct build *b, int i, graph_value x, const struct blk_layer *opt)
{
    graph_value h = blk_attention(b, i, x, &opt->attention);

    x = blk_add(b, x, blk_norm(b, h, TENSOR_ATTN_POST_NORM, i));
    h = blk_ffn(b, i, x, opt->act);
    return blk_add(b, x, blk_norm(b, h, TENSOR_FFN_POST_NORM, i));
}

static const struct blk_layer *parts_of(const struct build *b)
{
    static const struct blk_layer nothing;

    return b->m->arch->parts ? b->m->arch->parts : &nothing;
}

graph_value blk_plain_layer(struct build *b, int i, graph_value x)
{
    return blk_layer(b, i, x, parts_of(b));
}

graph_value blk_outer_layer(struct build *b, int i, graph_value x)
{
    const struct blk_layer *opt = parts_of(b);

    x = blk_norm(b, blk_add(b, x, blk_attention(b, i, x, &opt->attention)), TENSOR_ATTN_OUT_NORM,
                 i);
    return blk_norm(b, blk_add(b, x, blk_ffn(b, i, x, opt->act)), TENSOR_LAYER_OUT_NORM, i);
}

graph_value blk_parallel_layer(struct build *b, int i, graph_value x)
{
    const struct blk_layer *opt = parts_of(b);
    bool two = blk_weight(b, i, TENSOR_ATTN_NORM_2)->t.fmt != NULL;
    graph_value normed = blk_norm(b, x, TENSOR_ATTN_NORM, i);
    graph_value h =
        blk_attention(b, i, two ? blk_norm(b, x, TENSOR_ATTN_NORM_2, i) : normed, &opt->attention);

    x = blk_add(b, x, h);
    return blk_add(b, x, blk_ffn(b, i, blk_last(b, i, normed), opt->act));
}

graph_value blk_post_layer(struct build *b, int i, graph_value x)
{
    return blk_layer_post(b, i, x, parts_of(b));
}

const struct blk_layer blk_gemma3 = {
    .attention = {.qk_norm = true}, .act = OP_ACT_GELU, .post_norms = true};

/* x += h; x += blk_mixture(norm x) */
static graph_value with_mixture(struct build *b, int i, graph_value x, graph_value h)
{
    x = blk_add(b, x, h);
    return blk_add(b, x, blk_mixture(b, i, blk_rmsnorm(b, x, TENSOR_FFN_NORM, i)));
}

graph_value blk_mla_layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    return with_mixture(b, i, x, blk_mla(b, i, h, &(struct blk_mla){0}));
}

graph_value blk_shortconv_layer(struct build *b, int i, graph_value x)
{
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    if (b->hp->layers[i].kind & LAYER_RECURRENT)
        h = blk_shortconv(b, i, h);
    else
        h = blk_attention(b, i, h, &(struct blk_attention){.qk_norm = true});
    return with_mixture(b, i, x, h);
}

graph_value blk_one_part_layer(struct build *b, int i, graph_value x)
{
    unsigned kind = b->hp->layers[i].kind;
    graph_value h = blk_rmsnorm(b, x, TENSOR_ATTN_NORM, i);

    if (kind & LAYER_RECURRENT)
        h = blk_mamba2(b, i, h);
    else if (kind & LAYER_ATTENTION)
        h = blk_attention(b, i, h, &(struct blk_attention){0});
    else
        h = blk_mixture_of(b, i, h, OP_ACT_RELU2);
    return blk_add(b, x, h);
}
