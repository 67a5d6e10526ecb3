/* Layers of selective state spaces, and of a short convolution alone.  See blocks.h. */

#include "daemon/model/blocks/blocks.h"

static struct graph_conv conv_of(struct build *b, int layer)
{
    return (struct graph_conv){.taps = blk_weight(b, layer, TENSOR_SSM_CONV1D),
                               .bias = blk_bias(b, layer, TENSOR_SSM_CONV1D),
                               .silu = true};
}

/* silu(z) * y, normed by groups where the file has a norm, and out. */
static graph_value leave(struct build *b, int layer, graph_value z, graph_value y)
{
    const struct hparams *hp = b->hp;
    struct graph_weight norm =
        graph_weight_flat(blk_weight(b, layer, TENSOR_SSM_NORM), hp->ssm_inner);

    y = blk_gate(b, OP_ACT_SILU, z, blk_last(b, layer, y));
    if (norm.t.fmt)
        y = graph_rmsnorm(b->g, y, &norm, hp->rms_eps, hp->ssm_inner / hp->ssm_groups);
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_SSM_OUT), NULL);
}

graph_value blk_mamba2(struct build *b, int layer, graph_value x)
{
    const struct hparams *hp = b->hp;
    size_t in = hp->ssm_in_width, inner = hp->ssm_inner, rank = hp->ssm_rank;
    size_t groups = (size_t)hp->ssm_groups * hp->ssm_state;
    struct graph_weight a = graph_weight_flat(blk_bare(b, layer, TENSOR_SSM_A), rank);
    struct graph_weight through = graph_weight_flat(blk_bare(b, layer, TENSOR_SSM_D), rank);
    struct graph_conv c = conv_of(b, layer);
    struct graph_ssm s = {.through = &through,
                          .p = {.n_heads = hp->ssm_rank,
                                .n_groups = hp->ssm_groups,
                                .head_dim = hp->state_cols,
                                .n_state = hp->ssm_state}};
    graph_value z, dt, xbc[3];

    x = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_SSM_IN), NULL);
    z = graph_slice(b->g, x, 0, inner, in);
    dt = graph_slice(b->g, x, in - rank, rank, in);
    x = graph_slice(b->g, x, inner, hp->conv_width, in);
    graph_conv(b->g, x, &c, 3, (const size_t[]){inner, groups, groups}, xbc);
    s.dt = graph_softplus(b->g, dt, blk_bias(b, layer, TENSOR_SSM_DT), &a, &s.decay);
    s.x = xbc[0];
    s.in = xbc[1];
    s.out = xbc[2];
    return leave(b, layer, z, graph_ssm(b->g, &s));
}

/* Jamba norms what steers the state; Mamba has no such weights. */
static graph_value normed(struct build *b, int layer, graph_value x, enum tensor_name name)
{
    const struct graph_weight *w = blk_weight(b, layer, name);

    return w->t.fmt ? graph_rmsnorm(b->g, x, w, b->hp->rms_eps, 0) : x;
}

graph_value blk_mamba(struct build *b, int layer, graph_value x)
{
    const struct hparams *hp = b->hp;
    size_t inner = hp->ssm_inner, rank = hp->ssm_rank, n = hp->ssm_state, width = rank + 2 * n;
    struct graph_conv c = conv_of(b, layer);
    struct graph_ssm s = {.a = blk_bare(b, layer, TENSOR_SSM_A),
                          .through = blk_bare(b, layer, TENSOR_SSM_D),
                          .p = {.n_heads = 1,
                                .n_groups = 1,
                                .head_dim = hp->ssm_inner,
                                .n_state = hp->ssm_state,
                                .each = true}};
    graph_value z, dt;

    x = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_SSM_IN), NULL);
    z = graph_slice(b->g, x, inner, inner, 2 * inner);
    x = graph_slice(b->g, x, 0, inner, 2 * inner);
    graph_conv(b->g, x, &c, 1, &inner, &s.x);
    x = graph_matmul1(b->g, s.x, blk_weight(b, layer, TENSOR_SSM_X), NULL);
    dt = normed(b, layer, graph_slice(b->g, x, 0, rank, width), TENSOR_SSM_DT_NORM);
    s.in = normed(b, layer, graph_slice(b->g, x, rank, n, width), TENSOR_SSM_B_NORM);
    s.out = normed(b, layer, graph_slice(b->g, x, rank + n, n, width), TENSOR_SSM_C_NORM);
    dt = graph_matmul1(b->g, dt, blk_weight(b, layer, TENSOR_SSM_DT), NULL);
    s.dt = graph_softplus(b->g, dt, blk_bias(b, layer, TENSOR_SSM_DT), NULL, NULL);
    return leave(b, layer, z, graph_ssm(b->g, &s));
}

graph_value blk_shortconv(struct build *b, int layer, graph_value x)
{
    size_t n = b->hp->n_embd;
    struct graph_conv c = {.taps = blk_weight(b, layer, TENSOR_SHORTCONV_CONV)};
    graph_value gate, y;

    x = graph_matmul1(b->g, x, blk_weight(b, layer, TENSOR_SHORTCONV_IN), NULL);
    gate = graph_slice(b->g, x, n, n, 3 * n);
    y = graph_glu(b->g, OP_ACT_NONE, graph_slice(b->g, x, 0, n, 3 * n),
                  graph_slice(b->g, x, 2 * n, n, 3 * n));
    graph_conv(b->g, y, &c, 1, &n, &y);
    y = blk_gate(b, OP_ACT_NONE, gate, blk_last(b, layer, y));
    return graph_matmul1(b->g, y, blk_weight(b, layer, TENSOR_SHORTCONV_OUT), NULL);
}
