/* The builder: one function for each op.  See graph.h. */

#include <assert.h>
#include <stdlib.h>

#include "backends/formats/act.h"
#include "common/alloc.h"
#include "daemon/graph/graph_priv.h"

struct graph *graph_create(void)
{
    struct graph *g = XNEW(struct graph);

    g->layer = -1;
    g->output = GRAPH_NONE;
    return g;
}

void graph_destroy(struct graph *g)
{
    if (!g)
        return;
    free(g->nodes);
    free(g->values);
    free(g);
}

void graph_layer(struct graph *g, int layer)
{
    g->layer = layer;
}

struct tensor value_tensor(const struct value *v, size_t rows, void *data)
{
    struct tensor t = tensor_make(format_of(FORMAT_f32), data, v->width, rows, 1, 1);

    t.stride[1] = v->row_bytes;
    t.stride[2] = t.stride[3] = v->row_bytes * rows;
    return t;
}

static graph_value new_value(struct graph *g, size_t width, enum act_kind act, bool out)
{
    struct value *v;

    ARRAY_GROW(g->values, g->n_values + 1, g->cap_values);
    v = &g->values[g->n_values];
    *v = (struct value){
        .width = width, .row_bytes = act_row_bytes(act, width), .act = act, .out = out};
    for (int i = 0; i < ACT_COUNT; i++)
        v->quantised[i] = GRAPH_NONE;
    v->narrowed = GRAPH_NONE;
    return (graph_value)g->n_values++;
}

static struct node *new_node(struct graph *g, enum op_kind kind)
{
    struct node *n;

    ARRAY_GROW(g->nodes, g->n_nodes + 1, g->cap_nodes);
    n = &g->nodes[g->n_nodes++];
    *n = (struct node){.op = {.kind = kind, .layer = g->layer}};
    return n;
}

static void put_value(const struct graph *g, struct tensor *t, struct ref *ref, graph_value v)
{
    *ref = (struct ref){.kind = REF_VALUE, .index = v};
    *t = value_tensor(&g->values[v], 1, NULL);
}

static void put_src(const struct graph *g, struct node *n, int i, graph_value v)
{
    put_value(g, &n->op.src[i], &n->src[i], v);
}

static void put_dst(const struct graph *g, struct node *n, int i, graph_value v)
{
    put_value(g, &n->op.dst[i], &n->dst[i], v);
}

/* Absent weights leave the source empty. */
static void put_weight(struct node *n, int i, const struct graph_weight *w)
{
    if (!w || !w->t.fmt)
        return;
    n->op.src[i] = w->t;
    n->src[i] = (struct ref){REF_WEIGHT, w->id, w->offset};
}

struct graph_weight graph_weight_rows(const struct graph_weight *w, size_t from, size_t n)
{
    struct graph_weight part = *w;

    if (!w->t.fmt)
        return part;
    assert(n && from + n <= w->t.n[1]);
    part.t.n[1] = n;
    part.offset += from * w->t.stride[1];
    return part;
}

/* An op of one value in and one out. */
static graph_value map_value(struct graph *g, enum op_kind kind, graph_value x, size_t width,
                             struct node **ret)
{
    graph_value y = new_value(g, width, ACT_F32, g->values[x].out);
    struct node *n = new_node(g, kind);

    put_src(g, n, 0, x);
    put_dst(g, n, 0, y);
    *ret = n;
    return y;
}

struct graph_weight graph_weight_columns(const struct graph_weight *w, size_t from, size_t n)
{
    struct graph_weight part = *w;

    if (!w->t.fmt)
        return part;
    assert(n && from + n <= w->t.n[0] && from % w->t.fmt->block_elems == 0);
    part.t.n[0] = n;
    part.offset += format_row_bytes(w->t.fmt, from);
    return part;
}

graph_value graph_embed(struct graph *g, const struct graph_weight *table, float scale)
{
    graph_value y = new_value(g, table->t.n[0], ACT_F32, false);
    struct node *n = new_node(g, OP_EMBED);

    put_weight(n, 0, table);
    put_dst(g, n, 0, y);
    n->op.p.embed.scale = scale;
    return y;
}

graph_value graph_embed_by(struct graph *g, const struct graph_weight *table, enum op_embed by)
{
    graph_value y = graph_embed(g, table, 1.0f);

    g->nodes[g->n_nodes - 1].op.p.embed.by = by;
    return y;
}

graph_value graph_rope_table(struct graph *g, const struct op_rope_params *p,
                             const struct graph_weight *factors)
{
    graph_value y = new_value(g, p->n_dims, ACT_F32, false);
    struct node *n = new_node(g, OP_ROPE_TABLE);

    put_weight(n, 0, factors);
    put_dst(g, n, 0, y);
    n->op.p.rope_table = *p;
    return y;
}

graph_value graph_rmsnorm(struct graph *g, graph_value x, const struct graph_weight *w, float eps,
                          size_t group)
{
    size_t width = g->values[x].width;
    struct node *n;
    graph_value y = map_value(g, OP_RMSNORM, x, width, &n);

    put_weight(n, 1, w);
    n->op.p.rmsnorm.eps = eps;
    n->op.p.rmsnorm.group = group ? group : width;
    return y;
}

graph_value graph_rmsnorm_bias(struct graph *g, graph_value x, const struct graph_weight *w,
                               const struct graph_weight *bias, float eps)
{
    graph_value y = graph_rmsnorm(g, x, w, eps, 0);

    put_weight(&g->nodes[g->n_nodes - 1], 2, bias);
    return y;
}

graph_value graph_layernorm(struct graph *g, graph_value x, const struct graph_weight *w,
                            const struct graph_weight *bias, float eps, size_t group)
{
    size_t width = g->values[x].width;
    struct node *n;
    graph_value y = map_value(g, OP_LAYERNORM, x, width, &n);

    put_weight(n, 1, w);
    put_weight(n, 2, bias);
    n->op.p.layernorm.eps = eps;
    n->op.p.layernorm.group = group ? group : width;
    return y;
}

/* x as activations of a kind: made at the first use, found at the next. */
static graph_value quantised(struct graph *g, graph_value x, enum act_kind act)
{
    graph_value y = g->values[x].quantised[act];
    struct node *n;

    if (act == ACT_F32)
        return x;
    if (y != GRAPH_NONE)
        return y;
    y = new_value(g, g->values[x].width, act, g->values[x].out);
    n = new_node(g, OP_QUANTIZE);
    put_src(g, n, 0, x);
    put_dst(g, n, 0, y);
    n->op.p.quantize.act = act;
    g->values[x].quantised[act] = y;
    return y;
}

void graph_matmul(struct graph *g, graph_value x, unsigned n, const struct graph_weight *const *w,
                  const struct graph_weight *const *bias, graph_value *ret)
{
    bool out = g->values[x].out;

    assert(n <= OP_MAX_DST);
    for (int act = 0; act < ACT_COUNT; act++) {
        struct node *node = NULL;
        unsigned k = 0;

        for (unsigned i = 0; i < n; i++) {
            graph_value in;

            if (w[i]->t.fmt->act != (enum act_kind)act)
                continue;
            in = quantised(g, x, act);
            ret[i] = new_value(g, w[i]->t.n[1], ACT_F32, out);
            if (!node) {
                node = new_node(g, OP_MATMUL);
                node->op.p.matmul.act = act;
                put_src(g, node, 0, in);
            }
            put_weight(node, 1 + (int)k, w[i]);
            if (bias)
                put_weight(node, 4 + (int)k, bias[i]);
            put_dst(g, node, (int)k, ret[i]);
            node->op.p.matmul.n_weights = ++k;
        }
    }
}

graph_value graph_matmul1(struct graph *g, graph_value x, const struct graph_weight *w,
                          const struct graph_weight *bias)
{
    graph_value y;

    graph_matmul(g, x, 1, &w, &bias, &y);
    return y;
}

graph_value graph_heads(struct graph *g, graph_value x, const struct graph_weight *w)
{
    enum act_kind act = w->t.fmt->act;
    graph_value in = quantised(g, x, act), y;
    struct node *n;

    y = map_value(g, OP_HEADS, in, w->t.n[1] * w->t.n[2], &n);
    put_weight(n, 1, w);
    n->op.p.heads.act = act;
    return y;
}

graph_value graph_slice(struct graph *g, graph_value x, size_t from, size_t n, size_t group)
{
    struct node *node;
    graph_value y = map_value(g, OP_SLICE, x, g->values[x].width / group * n, &node);

    node->op.p.slice.from = from;
    node->op.p.slice.n = n;
    node->op.p.slice.group = group;
    return y;
}

graph_value graph_join(struct graph *g, graph_value a, size_t na, graph_value b, size_t nb)
{
    size_t width = g->values[a].width;
    struct node *n;
    graph_value y = map_value(g, OP_JOIN, a, width + width / na * nb, &n);

    put_src(g, n, 1, b);
    n->op.p.join.n[0] = na;
    n->op.p.join.n[1] = nb;
    return y;
}

void graph_rope(struct graph *g, graph_value x, graph_value table, enum op_rope type,
                unsigned n_dims, unsigned head_dim)
{
    graph_rope_part(g, x, table, type, n_dims, head_dim, 0);
}

void graph_rope_part(struct graph *g, graph_value x, graph_value table, enum op_rope type,
                     unsigned n_dims, unsigned head_dim, unsigned offset)
{
    struct node *n = new_node(g, OP_ROPE);

    /* x changes: what was made from it before is no longer it. */
    for (int i = 0; i < ACT_COUNT; i++)
        g->values[x].quantised[i] = GRAPH_NONE;
    g->values[x].narrowed = GRAPH_NONE;
    put_src(g, n, 0, x);
    put_src(g, n, 1, table);
    put_dst(g, n, 0, x);
    n->op.p.rope.type = type;
    n->op.p.rope.n_dims = n_dims;
    n->op.p.rope.offset = offset;
    n->op.p.rope.head_dim = head_dim;
}

/* The shape of a cache is the layout's: plan.c puts it in. */
static void put_cache(struct node *n, int i, enum ref_kind kind)
{
    n->src[i] = (struct ref){.kind = kind, .index = (uint32_t)n->op.layer};
}

void graph_kv_store(struct graph *g, graph_value k, graph_value v, unsigned n_kv_heads,
                    unsigned head_dim, unsigned v_dim)
{
    struct node *n = new_node(g, OP_KV_STORE);

    assert(g->layer >= 0);
    put_src(g, n, 0, k);
    put_cache(n, 2, REF_K);
    if (v != GRAPH_NONE) {
        put_src(g, n, 1, v);
        put_cache(n, 3, REF_V);
    }
    n->op.p.kv_store.n_kv_heads = n_kv_heads;
    n->op.p.kv_store.head_dim = head_dim;
    n->op.p.kv_store.v_dim = v_dim;
}

static graph_value attention(struct graph *g, enum op_kind kind, graph_value q,
                             const struct graph_attention *a, struct node **ret)
{
    struct node *n;
    graph_value y = map_value(g, kind, q, (size_t)a->n_heads * a->v_dim, &n);

    assert(g->layer >= 0);
    put_cache(n, 1, REF_K);
    put_cache(n, 2, REF_V);
    if (a->shares)
        n->src[1].index = n->src[2].index = a->shared;
    put_weight(n, 3, a->sinks);
    n->op.p.attention.n_heads = a->n_heads;
    n->op.p.attention.n_kv_heads = a->n_kv_heads;
    n->op.p.attention.head_dim = a->head_dim;
    n->op.p.attention.v_dim = a->v_dim;
    n->op.p.attention.window = a->window;
    n->op.p.attention.chunked = a->chunked;
    n->op.p.attention.scale = a->scale;
    n->op.p.attention.soft_cap = a->soft_cap;
    n->op.p.attention.non_causal = a->non_causal;
    *ret = n;
    return y;
}

graph_value graph_attention(struct graph *g, graph_value q, const struct graph_attention *a)
{
    struct node *n;

    return attention(g, OP_ATTENTION, q, a, &n);
}

graph_value graph_sparse(struct graph *g, graph_value q, graph_value chosen,
                         const struct graph_attention *a)
{
    struct node *n;
    graph_value y = attention(g, OP_SPARSE, q, a, &n);

    put_src(g, n, 4, chosen);
    return y;
}

void graph_index_store(struct graph *g, graph_value k, unsigned dim)
{
    struct node *n = new_node(g, OP_KV_STORE);

    assert(g->layer >= 0);
    put_src(g, n, 0, k);
    put_cache(n, 2, REF_INDEX);
    n->op.p.kv_store.n_kv_heads = 1;
    n->op.p.kv_store.head_dim = dim;
}

graph_value graph_indexer(struct graph *g, graph_value q, graph_value w,
                          const struct op_indexer_params *p, unsigned top_k)
{
    struct node *n;
    graph_value y = map_value(g, OP_INDEXER, q, top_k, &n);

    assert(g->layer >= 0);
    put_src(g, n, 1, w);
    put_cache(n, 2, REF_INDEX);
    n->op.p.indexer = *p;
    return y;
}

void graph_compress(struct graph *g, const struct graph_compress *c)
{
    struct node *n = new_node(g, OP_COMPRESS);

    assert(g->layer >= 0 && !g->values[c->x].out);
    put_src(g, n, 0, c->x);
    put_src(g, n, 1, c->score);
    put_weight(n, 2, c->place);
    put_weight(n, 3, c->norm);
    put_cache(n, 4, REF_CONV);
    put_cache(n, 5, c->index ? REF_INDEX : REF_GROUPS);
    n->op.p.compress = c->p;
}

graph_value graph_near_far(struct graph *g, graph_value q, graph_value chosen, unsigned group,
                           const struct graph_attention *a)
{
    struct node *n;
    graph_value y = attention(g, OP_NEAR_FAR, q, a, &n);

    put_cache(n, 2, REF_GROUPS);
    if (chosen != GRAPH_NONE)
        put_src(g, n, 4, chosen);
    n->op.p.attention.group = group;
    return y;
}

graph_value graph_hyper_mix(struct graph *g, graph_value x, const struct graph_weight *scale,
                            const struct graph_weight *base, const struct op_hyper_params *p)
{
    struct node *n;
    graph_value y = map_value(g, OP_HYPER_MIX, x, g->values[x].width, &n);

    put_weight(n, 1, scale);
    put_weight(n, 2, base);
    n->op.p.hyper = *p;
    return y;
}

graph_value graph_hyper_in(struct graph *g, graph_value streams, graph_value mix, unsigned n)
{
    struct node *node;
    graph_value y = map_value(g, OP_HYPER_IN, streams, g->values[streams].width / n, &node);

    put_src(g, node, 1, mix);
    node->op.p.hyper.n = n;
    return y;
}

/* All streams take of y, by shares; cut to its rows. */
static graph_value into_streams(struct graph *g, enum op_kind kind, graph_value streams,
                                graph_value y, graph_value shares, unsigned n)
{
    struct node *node;
    graph_value z;

    streams = graph_like(g, streams, y);
    shares = graph_like(g, shares, y);
    z = map_value(g, kind, streams, g->values[streams].width, &node);
    put_src(g, node, 1, y);
    put_src(g, node, 2, shares);
    node->op.p.hyper.n = n;
    return z;
}

graph_value graph_hyper_out(struct graph *g, graph_value streams, graph_value y, graph_value mix,
                            unsigned n)
{
    return into_streams(g, OP_HYPER_OUT, streams, y, mix, n);
}

graph_value graph_predict(struct graph *g, graph_value streams, graph_value shares, unsigned n)
{
    struct node *node;
    graph_value y = map_value(g, OP_PREDICT, streams, g->values[streams].width, &node);

    put_src(g, node, 1, shares);
    node->op.p.hyper.n = n;
    return y;
}

graph_value graph_correct(struct graph *g, graph_value streams, graph_value first,
                          graph_value shares, unsigned n)
{
    return into_streams(g, OP_CORRECT, streams, first, shares, n);
}

graph_value graph_magnitude(struct graph *g, graph_value x, graph_value y)
{
    struct node *n;
    graph_value z = map_value(g, OP_MAGNITUDE, x, g->values[x].width, &n);

    put_src(g, n, 1, y);
    return z;
}

graph_value graph_above(struct graph *g, graph_value x, float s)
{
    struct node *n;
    graph_value y = map_value(g, OP_ABOVE, x, g->values[x].width, &n);

    n->op.p.above.s = s;
    return y;
}

graph_value graph_glu(struct graph *g, enum op_act act, graph_value gate, graph_value up)
{
    struct node *n;
    graph_value y = map_value(g, OP_GLU, gate, g->values[gate].width, &n);

    if (up != GRAPH_NONE)
        put_src(g, n, 1, up);
    n->op.p.glu.act = act;
    return y;
}

graph_value graph_swiglu(struct graph *g, float limit, graph_value gate, graph_value up)
{
    graph_value y = graph_glu(g, OP_ACT_SILU, gate, up);

    g->nodes[g->n_nodes - 1].op.p.glu.limit = limit;
    return y;
}

graph_value graph_add(struct graph *g, graph_value a, graph_value b)
{
    struct node *n;
    graph_value y;

    if (g->values[a].out != g->values[b].out) {
        a = graph_rows(g, a);
        b = graph_rows(g, b);
    }
    y = map_value(g, OP_ADD, a, g->values[a].width, &n);
    put_src(g, n, 1, b);
    return y;
}

graph_value graph_scale(struct graph *g, graph_value x, float s)
{
    struct node *n;
    graph_value y = map_value(g, OP_SCALE, x, g->values[x].width, &n);

    n->op.p.scale.s = s;
    return y;
}

graph_value graph_scale_by(struct graph *g, graph_value x, const struct graph_weight *w)
{
    graph_value y = graph_scale(g, x, 1.0f);

    put_weight(&g->nodes[g->n_nodes - 1], 1, w);
    return y;
}

graph_value graph_temperature(struct graph *g, graph_value x, float temperature, unsigned step,
                              unsigned offset)
{
    graph_value y = graph_scale(g, x, 1.0f);
    struct node *n = &g->nodes[g->n_nodes - 1];

    n->op.p.scale.temperature = temperature;
    n->op.p.scale.step = step;
    n->op.p.scale.offset = offset;
    return y;
}

graph_value graph_softcap(struct graph *g, graph_value x, float cap)
{
    struct node *n;
    graph_value y = map_value(g, OP_SOFTCAP, x, g->values[x].width, &n);

    n->op.p.softcap.cap = cap;
    return y;
}

static void put_router(struct graph *g, graph_value x, const struct graph_moe *m, graph_value *ids,
                       graph_value *weights)
{
    graph_value logits =
        graph_matmul1(g, m->router_x ? *m->router_x : x, m->router, m->router_bias);
    bool out = g->values[x].out;
    struct node *n;

    *ids = new_value(g, m->n_used, ACT_F32, out);
    *weights = new_value(g, m->n_used, ACT_F32, out);
    n = new_node(g, OP_ROUTER);
    put_src(g, n, 0, logits);
    put_weight(n, 1, m->bias);
    put_weight(n, 2, m->factor);
    put_weight(n, 3, m->ids);
    put_dst(g, n, 0, *ids);
    put_dst(g, n, 1, *weights);
    n->op.p.router.n_expert = m->n_expert;
    n->op.p.router.n_used = m->n_used;
    n->op.p.router.n_group = m->n_group;
    n->op.p.router.n_group_used = m->n_group_used;
    n->op.p.router.gating = m->gating;
    n->op.p.router.normalise = m->normalise;
    n->op.p.router.scale = m->scale;
}

graph_value graph_moe(struct graph *g, graph_value x, const struct graph_moe *m)
{
    enum act_kind act = m->gate->t.fmt->act;
    graph_value ids, weights, in, y;
    struct node *n;

    put_router(g, x, m, &ids, &weights);
    in = quantised(g, x, act);
    y = new_value(g, m->down->t.n[1], ACT_F32, g->values[x].out);
    n = new_node(g, OP_MOE);
    put_src(g, n, 0, in);
    put_src(g, n, 1, ids);
    put_src(g, n, 2, weights);
    put_weight(n, 3, m->gate);
    put_weight(n, 4, m->up);
    put_weight(n, 5, m->down);
    put_weight(n, 6, m->gate_bias);
    put_weight(n, 7, m->up_bias);
    put_weight(n, 8, m->down_bias);
    put_dst(g, n, 0, y);
    n->op.p.moe.n_expert = m->n_expert;
    n->op.p.moe.n_used = m->n_used;
    n->op.p.moe.act = m->act;
    n->op.p.moe.limit = m->limit;
    n->op.p.moe.weigh_first = m->weigh_first;
    n->op.p.moe.alone = m->alone;
    n->op.p.moe.in_act = act;
    n->op.p.moe.mid_act = m->down->t.fmt->act;
    return y;
}

void graph_conv(struct graph *g, graph_value x, const struct graph_conv *c, unsigned n,
                const size_t *widths, graph_value *ret)
{
    struct node *node = new_node(g, OP_CONV);

    assert(g->layer >= 0 && n <= OP_MAX_DST && !g->values[x].out);
    put_src(g, node, 0, x);
    put_weight(node, 1, c->taps);
    put_weight(node, 2, c->bias);
    put_cache(node, 3, REF_CONV);
    for (unsigned i = 0; i < n; i++) {
        ret[i] = new_value(g, widths[i], ACT_F32, false);
        put_dst(g, node, (int)i, ret[i]);
    }
    node->op.p.conv.silu = c->silu;
    node->op.p.conv.column = c->column;
}

graph_value graph_softplus(struct graph *g, graph_value x, const struct graph_weight *bias,
                           const struct graph_weight *a, graph_value *ret_decay)
{
    struct node *n;
    graph_value y = map_value(g, OP_DECAY, x, g->values[x].width, &n);

    put_weight(n, 1, bias);
    if (!ret_decay)
        return y;
    put_weight(n, 2, a);
    *ret_decay = new_value(g, g->values[x].width, ACT_F32, g->values[x].out);
    n = &g->nodes[g->n_nodes - 1];
    put_dst(g, n, 1, *ret_decay);
    return y;
}

graph_value graph_delta(struct graph *g, const struct graph_delta *d)
{
    graph_value y = new_value(g, (size_t)d->p.n_heads * d->p.v_dim, ACT_F32, false);
    struct node *n = new_node(g, OP_DELTA);

    assert(g->layer >= 0 && !g->values[d->q].out);
    put_src(g, n, 0, d->q);
    put_src(g, n, 1, d->k);
    put_src(g, n, 2, d->v);
    put_src(g, n, 3, d->decay);
    put_src(g, n, 4, d->rate);
    put_cache(n, 5, REF_STATE);
    put_dst(g, n, 0, y);
    n->op.p.delta = d->p;
    return y;
}

graph_value graph_shift(struct graph *g, graph_value x, unsigned column)
{
    struct node *n;
    graph_value y = map_value(g, OP_SHIFT, x, g->values[x].width, &n);

    assert(g->layer >= 0 && !g->values[x].out);
    put_cache(n, 1, REF_CONV);
    n->op.p.shift.column = column;
    return y;
}

static graph_value lerp(struct graph *g, graph_value x, graph_value y, struct node **ret)
{
    graph_value z;

    x = graph_like(g, x, y);
    y = graph_like(g, y, x);
    z = map_value(g, OP_LERP, x, g->values[x].width, ret);
    put_src(g, *ret, 1, y);
    return z;
}

graph_value graph_lerp(struct graph *g, graph_value x, graph_value y, graph_value share)
{
    struct node *n;
    graph_value z = lerp(g, x, y, &n);

    assert(g->values[share].out == g->values[z].out);
    put_src(g, n, 2, share);
    return z;
}

graph_value graph_lerp_by(struct graph *g, graph_value x, graph_value y,
                          const struct graph_weight *share)
{
    struct node *n;
    graph_value z = lerp(g, x, y, &n);

    put_weight(n, 2, share);
    return z;
}

graph_value graph_wkv(struct graph *g, const struct graph_wkv *w, graph_value *ret_bonus)
{
    size_t width = (size_t)w->n_heads * w->head_dim;
    graph_value y = new_value(g, width, ACT_F32, false);
    struct node *n;

    assert(g->layer >= 0 && !g->values[w->r].out);
    *ret_bonus = new_value(g, width, ACT_F32, false);
    n = new_node(g, OP_WKV);
    put_src(g, n, 0, w->r);
    put_src(g, n, 1, w->decay);
    put_src(g, n, 2, w->k);
    put_src(g, n, 3, w->v);
    put_src(g, n, 4, w->rate);
    put_weight(n, 5, w->remove);
    put_weight(n, 6, w->write);
    put_weight(n, 7, w->bonus);
    put_cache(n, 8, REF_STATE);
    put_dst(g, n, 0, y);
    put_dst(g, n, 1, *ret_bonus);
    n->op.p.wkv.n_heads = w->n_heads;
    n->op.p.wkv.head_dim = w->head_dim;
    return y;
}

graph_value graph_rows(struct graph *g, graph_value x)
{
    graph_value y = g->values[x].narrowed;
    struct node *n;

    if (g->values[x].out)
        return x;
    if (y != GRAPH_NONE)
        return y;
    y = new_value(g, g->values[x].width, ACT_F32, true);
    n = new_node(g, OP_ROWS);
    put_src(g, n, 0, x);
    put_dst(g, n, 0, y);
    g->values[x].narrowed = y;
    return y;
}

graph_value graph_ssm(struct graph *g, const struct graph_ssm *s)
{
    graph_value y = new_value(g, (size_t)s->p.n_heads * s->p.head_dim, ACT_F32, false);
    struct node *n = new_node(g, OP_SSM);

    assert(g->layer >= 0 && !g->values[s->x].out);
    put_src(g, n, 0, s->x);
    put_src(g, n, 1, s->in);
    put_src(g, n, 2, s->out);
    put_src(g, n, 3, s->dt);
    if (s->p.each)
        put_weight(n, 4, s->a);
    else
        put_src(g, n, 4, s->decay);
    put_weight(n, 5, s->through);
    put_cache(n, 6, REF_STATE);
    put_dst(g, n, 0, y);
    n->op.p.ssm = s->p;
    return y;
}

struct graph_weight graph_weight_flat(const struct graph_weight *w, size_t n)
{
    struct graph_weight flat = *w;

    if (w->t.fmt)
        flat.t = tensor_make(w->t.fmt, NULL, n, w->t.n[0] * tensor_rows(&w->t) / n, 1, 1);
    return flat;
}

graph_value graph_like(struct graph *g, graph_value x, graph_value y)
{
    return g->values[y].out ? graph_rows(g, x) : x;
}

void graph_output(struct graph *g, graph_value x)
{
    assert(g->values[x].out);
    g->output = x;
}

const struct op *graph_find_op(const struct graph *g, int layer, enum op_kind kind)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (g->nodes[i].op.layer == layer && g->nodes[i].op.kind == kind)
            return &g->nodes[i].op;
    return NULL;
}

static bool reads_token_rows(const struct node *n)
{
    return n->op.kind == OP_EMBED && n->op.p.embed.by == OP_EMBED_TOKEN;
}

static bool reads_slices(const struct node *n, int src)
{
    return n->op.kind == OP_MOE && src >= 3 && src <= 5 && n->op.p.moe.n_expert > 1;
}

static bool is_wanted(const struct graph *g, const struct node *n)
{
    return n->dst[0].kind == REF_VALUE && g->values[n->dst[0].index].out;
}

bool graph_op_wanted(const struct graph *g, const struct op *op)
{
    for (size_t i = 0; i < g->n_nodes; i++)
        if (&g->nodes[i].op == op)
            return is_wanted(g, &g->nodes[i]);
    return false;
}

void graph_readings(const struct graph *g, size_t n, struct graph_reading *ret)
{
    bool *whole = XNEW_ARRAY(bool, n), *all_rows = XNEW_ARRAY(bool, n);
    size_t n_tables = 0;

    for (size_t i = 0; i < n; i++)
        ret[i] = (struct graph_reading){0};
    for (size_t i = 0; i < g->n_nodes; i++)
        for (int s = 0; s < OP_MAX_SRC; s++) {
            const struct ref *ref = &g->nodes[i].src[s];

            if (ref->kind != REF_WEIGHT)
                continue;
            all_rows[ref->index] |= !is_wanted(g, &g->nodes[i]);
            if (reads_slices(&g->nodes[i], s))
                ret[ref->index].n_experts = g->nodes[i].op.p.moe.n_expert;
            else if (reads_token_rows(&g->nodes[i]))
                ret[ref->index].by_row = true;
            else
                whole[ref->index] = true;
        }
    for (size_t i = 0; i < n; i++)
        n_tables += ret[i].by_row && !whole[i];
    for (size_t i = 0; i < n; i++) {
        if (whole[i])
            ret[i] = (struct graph_reading){0};
        /* the executor has one place for rows */
        ret[i].by_row = ret[i].by_row && n_tables == 1;
        ret[i].wanted = !all_rows[i];
    }
    free(whole);
    free(all_rows);
}
