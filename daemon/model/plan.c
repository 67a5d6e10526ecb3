/* What a load would take, before anything is reserved.  See model.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "daemon/model/blocks/blocks.h"

#define ARENA_ALIGN 64

struct sequence_layout model_layout(const struct model *m, const struct model_options *opt,
                                    struct sequence_layer *layers)
{
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (m->hp.layers[i].kind & LAYER_ATTENTION)
            layers[i] = (struct sequence_layer){.n_kv_heads = m->hp.layers[i].n_kv_heads,
                                                .k_dim = m->hp.head_dim,
                                                .v_dim = m->hp.v_dim,
                                                .v_in_k = m->hp.absorbed};
    return (struct sequence_layout){.layers = layers,
                                    .n_layers = m->hp.n_layers,
                                    .k_fmt = opt->kv,
                                    .v_fmt = opt->kv,
                                    .n_ctx = opt->n_ctx};
}

size_t model_kv_bytes_per_token(const struct model *m, const struct format *kv)
{
    size_t heads = 0;

    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (m->hp.layers[i].kind & LAYER_ATTENTION)
            heads += m->hp.layers[i].n_kv_heads;
    /* a head that is no whole number of blocks is refused when it is loaded; here it is only shown */
    return heads * (format_row_bytes(kv, m->hp.head_dim) +
                    (m->hp.absorbed ? 0 : format_row_bytes(kv, m->hp.v_dim)));
}

int model_options_check(const struct model *m, const struct model_options *opt,
                        struct model_options *ret, struct err *err)
{
    struct model_options o = *opt;

    if (!o.kv)
        o.kv = format_of(FORMAT_f16);
    if (!o.kv->from_f32)
        return err_set_param(err, ERR_INVALID, "kv",
                             "KV format %s cannot be written; use f16, q8_0 or q4_0", o.kv->name);
    if (m->hp.head_dim % o.kv->block_elems != 0 || m->hp.v_dim % o.kv->block_elems != 0)
        return err_set_param(
            err, ERR_INVALID, "kv",
            "KV format %s needs heads of a multiple of %u values, and these have %u; use f16",
            o.kv->name, o.kv->block_elems, m->hp.head_dim);
    if (o.n_ctx > m->hp.n_ctx_train)
        return err_set_param(err, ERR_INVALID, "ctx",
                             "a context of %zu is more than the %u that the model was trained for",
                             o.n_ctx, m->hp.n_ctx_train);
    if (m->arch->encoder) /* a text is one batch: as many rows as its context has */
        o.n_batch = MODEL_BATCH_MAX;
    if (!o.n_batch)
        o.n_batch = MODEL_BATCH_DEFAULT;
    if (o.n_batch > MODEL_BATCH_MAX)
        return err_set_param(err, ERR_INVALID, "batch", "a batch of %zu rows is more than %d",
                             o.n_batch, MODEL_BATCH_MAX);
    o.n_batch = MIN(o.n_batch, o.n_ctx ? o.n_ctx : m->hp.n_ctx_train);
    if (!o.n_out)
        o.n_out = MODEL_OUT_DEFAULT;
    if (m->hp.pooling == POOLING_MEAN)
        o.n_out = o.n_batch;
    o.n_out = MIN(o.n_out, o.n_batch);
    *ret = o;
    return 0;
}

struct graph *model_graph(const struct model *m, size_t n_ctx)
{
    struct build b = {.g = graph_create(), .m = m, .hp = &m->hp, .n_ctx = n_ctx};
    graph_value x = blk_embed(&b);

    for (int i = 0; i < (int)m->hp.n_layers; i++) {
        graph_layer(b.g, i);
        x = m->arch->layer(&b, i, x);
    }
    graph_layer(b.g, -1);
    blk_head(&b, x);
    return b.g;
}

size_t model_scratch_bytes(const struct program *p)
{
    return (program_arena_bytes(p) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN +
           program_scratch_bytes(p);
}

static size_t text_bytes(const struct model *m)
{
    size_t n = gguf_memory_bytes(m->g) + m->n_weights * sizeof *m->weights +
               m->cap_bound * sizeof *m->bound;

    if (m->tokenizer)
        n += tokenizer_memory_bytes(m->tokenizer);
    if (m->chat_template)
        n += strlen(m->chat_template) + 1;
    return alloc_page_round(n);
}

static void need_weights(const struct model *m, const struct backend_ops *ops, struct backend *be,
                         struct sizes *s)
{
    struct residency *r = residency_create(m->g, NULL, ops, be, m->name);

    model_add_extents(m, r);
    residency_need(r, &s->account[ACCOUNT_WEIGHTS], &s->account[ACCOUNT_STAGING]);
    residency_destroy(r);
}

/* Saturates: a context that no machine can hold is simply too much. */
static void sum_up(struct sizes *s)
{
    s->total = 0;
    for (int i = 0; i < ACCOUNT_COUNT; i++)
        if (i != ACCOUNT_STAGING && __builtin_add_overflow(s->total, s->account[i], &s->total))
            s->total = SIZE_MAX;
    if (__builtin_add_overflow(s->total, s->account[ACCOUNT_STAGING], &s->peak))
        s->peak = SIZE_MAX;
}

int model_sizes(const struct model *m, const struct model_options *opt,
                const struct backend_ops *ops, struct backend *be, struct sizes *ret,
                struct program **ret_program, struct err *err)
{
    struct sequence_layer *layers = XNEW_ARRAY(struct sequence_layer, m->hp.n_layers);
    struct sequence_layout layout = model_layout(m, opt, layers);
    struct program_options po = {
        .max_rows = opt->n_batch, .max_out = opt->n_out, .layout = &layout};
    struct graph *g = model_graph(m, opt->n_ctx);
    struct program *p = NULL;
    struct sizes s = {0};
    int r = graph_compile(g, &po, ops, be, &p, err);

    if (r < 0)
        goto out;
    need_weights(m, ops, be, &s);
    s.account[ACCOUNT_KV] = sequence_bytes(&layout, ops, be);
    s.account[ACCOUNT_SCRATCH] =
        ops->alloc_bytes(be, model_scratch_bytes(p)) + alloc_page_round(program_memory_bytes(p));
    s.account[ACCOUNT_TEXT] = text_bytes(m);
    sum_up(&s);
    *ret = s;
    if (ret_program) {
        *ret_program = p;
        p = NULL;
    }
out:
    program_destroy(p);
    graph_destroy(g);
    free(layers);
    return r;
}

/* The largest context, a multiple of the step and at most `most`, whose peak fits; 0 when none does. */
static int largest_ctx(const struct model *m, const struct model_options *opt, size_t most,
                       const struct backend_ops *ops, struct backend *be, size_t free_bytes,
                       size_t *ret, struct err *err)
{
    size_t lo = 0, hi = most / MODEL_CTX_STEP;

    while (lo < hi) {
        struct model_options o = *opt;
        size_t mid = hi - (hi - lo) / 2;
        struct sizes s;
        int r;

        o.n_ctx = mid * MODEL_CTX_STEP;
        r = model_sizes(m, &o, ops, be, &s, NULL, err);
        if (r < 0)
            return r;
        if (s.peak <= free_bytes)
            lo = mid;
        else
            hi = mid - 1;
    }
    *ret = lo * MODEL_CTX_STEP;
    return 0;
}

static int give_advice(const struct model *m, const struct model_options *opt,
                       const struct backend_ops *ops, struct backend *be, struct model_plan *p,
                       struct err *err)
{
    struct model_options o = *opt;
    char need[24], have[24];
    struct sizes s;
    int r;

    r = largest_ctx(m, &o, MIN(p->n_ctx, m->hp.n_ctx_train), ops, be, p->free_bytes, &o.n_ctx, err);
    if (r < 0)
        return r;
    if (o.n_ctx && o.n_ctx < p->n_ctx) {
        r = model_sizes(m, &o, ops, be, &s, NULL, err);
        if (r < 0)
            return r;
        snprintf(p->advice, sizeof p->advice,
                 "--ctx %zu would need %s; all of %zu needs a budget of %s", o.n_ctx,
                 units_format_size(s.peak, need, sizeof need), p->n_ctx,
                 units_format_size(p->peak, have, sizeof have));
        return 0;
    }
    snprintf(p->advice, sizeof p->advice,
             "a budget of %s would do, %s of it for weights; no smaller context helps",
             units_format_size(p->peak, need, sizeof need),
             units_format_size(p->account[ACCOUNT_WEIGHTS], have, sizeof have));
    return 0;
}

/* Read for one token: every matrix but the token table (one row of it), experts by the share that is used. */
static double bytes_per_token(const struct model *m, const struct model_options *opt)
{
    const struct graph_weight *table = model_weight(m, -1, TENSOR_TOKEN_EMBD, PART_WEIGHT);
    bool tied = !model_weight(m, -1, TENSOR_OUTPUT, PART_WEIGHT)->t.fmt;
    double sum = 0;

    for (size_t i = 0; i < m->n_bound; i++) {
        double share = 1.0;

        if (i == table->id && !tied)
            share = 1.0 / m->hp.n_vocab;
        else if (m->bound[i]->n_dims == 3 && m->hp.n_expert)
            share = (double)m->hp.n_expert_used / m->hp.n_expert;
        sum += share * (double)m->bound[i]->bytes;
    }
    return sum + (double)model_kv_bytes_per_token(m, opt->kv) * (double)opt->n_ctx / 2;
}

int model_plan(struct model *m, const struct model_options *opt, const struct backend_ops *ops,
               struct backend *be, size_t free_bytes, struct model_plan *ret, struct err *err)
{
    struct model_options o;
    struct model_plan p = {.free_bytes = free_bytes};
    struct sizes s;
    int r = model_options_check(m, opt, &o, err);

    if (r < 0)
        return r;
    if (!o.n_ctx)
        o.n_ctx = m->hp.n_ctx_train;
    r = model_sizes(m, &o, ops, be, &s, NULL, err);
    if (r >= 0 && !opt->n_ctx && s.peak > free_bytes) {
        size_t least = MIN(MODEL_CTX_STEP, m->hp.n_ctx_train);

        r = largest_ctx(m, &o, m->hp.n_ctx_train, ops, be, free_bytes, &o.n_ctx, err);
        if (r < 0)
            return r;
        o.n_ctx = MAX(o.n_ctx, least);
        p.ctx_capped = true;
        r = model_options_check(m, &o, &o, err);
        if (r >= 0)
            r = model_sizes(m, &o, ops, be, &s, NULL, err);
    }
    if (r < 0)
        return r;
    p.n_ctx = o.n_ctx;
    memcpy(p.account, s.account, sizeof p.account);
    p.total = s.total;
    p.peak = p.floor = s.peak;
    p.fits = s.peak <= free_bytes;
    p.bytes_per_token = bytes_per_token(m, &o);
    if (!p.fits)
        r = give_advice(m, &o, ops, be, &p, err);
    if (r >= 0)
        *ret = p;
    return r;
}
