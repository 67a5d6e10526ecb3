/* What a load would take, before anything is reserved.  See model.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/units.h"
#include "daemon/model/blocks/blocks.h"

#define ARENA_ALIGN 64

/* An encoder's text is one batch, so its cache is no larger without one. */
static unsigned window_of(const struct model *m, size_t layer)
{
    return m->hp.layers[layer].kind & LAYER_WINDOW && !m->arch->encoder ? m->hp.n_swa : 0;
}

struct sequence_layout model_layout(const struct model *m, const struct model_options *opt,
                                    struct sequence_layer *layers)
{
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (m->hp.layers[i].kind & LAYER_ATTENTION)
            layers[i] =
                (struct sequence_layer){.n_kv_heads = m->hp.layers[i].n_kv_heads,
                                        .k_dim = hparams_head_dim(&m->hp, i),
                                        .v_dim = hparams_v_dim(&m->hp, i),
                                        .index_dim = m->hp.layers[i].indexer ? m->hp.index_dim : 0,
                                        .v_in_k = m->hp.absorbed,
                                        .group = m->hp.layers[i].group,
                                        .window = window_of(m, i)};
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (m->hp.layers[i].kind & LAYER_RECURRENT) {
            layers[i].conv_rows = m->hp.conv_rows;
            layers[i].conv_width = m->hp.conv_width;
            layers[i].state_heads = m->hp.state_heads;
            layers[i].state_rows = m->hp.state_rows;
            layers[i].state_cols = m->hp.state_cols;
        }
    for (size_t i = 0; i < m->hp.n_layers; i++)
        if (m->hp.layers[i].kind & LAYER_GROUPS) {
            layers[i].conv_rows = hparams_group_rows(&m->hp, i);
            layers[i].conv_width = hparams_group_width(&m->hp, i);
        }
    return (struct sequence_layout){.layers = layers,
                                    .n_layers = m->hp.n_layers,
                                    .k_fmt = opt->kv,
                                    .v_fmt = opt->kv,
                                    .n_ctx = opt->n_ctx,
                                    .n_batch = opt->n_batch,
                                    .n_checkpoints = MODEL_CHECKPOINTS};
}

size_t model_position_bytes(const struct model *m, size_t layer, const struct format *kv)
{
    size_t k = format_row_bytes(kv, hparams_head_dim(&m->hp, layer));
    size_t v = m->hp.absorbed ? 0 : format_row_bytes(kv, hparams_v_dim(&m->hp, layer));

    return m->hp.layers[layer].n_kv_heads * (k + v);
}

static size_t layer_bytes_per_token(const struct model *m, size_t i, const struct format *kv)
{
    const struct hparams_layer *y = &m->hp.layers[i];
    size_t k = format_row_bytes(kv, hparams_head_dim(&m->hp, i));
    size_t index = y->indexer ? format_row_bytes(kv, m->hp.index_dim) : 0;

    if (!(y->kind & LAYER_ATTENTION))
        return 0;
    if (y->kind & LAYER_GROUPS)
        return (k + index + y->group - 1) / y->group;
    return window_of(m, i) ? 0 : model_position_bytes(m, i, kv) + index;
}

size_t model_kv_bytes_per_token(const struct model *m, const struct format *kv)
{
    size_t sum = 0;

    /* a head that is no whole number of blocks is refused when it is loaded; here it is only shown */
    for (size_t i = 0; i < m->hp.n_layers; i++)
        sum += layer_bytes_per_token(m, i, kv);
    return sum;
}

size_t model_state_bytes(const struct model *m, const struct format *kv)
{
    struct sequence_layer *layers = XNEW_ARRAY(struct sequence_layer, m->hp.n_layers);
    const struct model_options opt = {.kv = kv};
    size_t sum = 0;

    model_layout(m, &opt, layers);
    for (size_t i = 0; i < m->hp.n_layers; i++) {
        const struct sequence_layer *y = &layers[i];

        sum += (size_t)y->window * y->n_kv_heads *
               (format_row_bytes(kv, y->k_dim) + format_row_bytes(kv, y->v_dim));
        sum += sizeof(float) * ((size_t)y->conv_rows * y->conv_width +
                                (size_t)y->state_heads * y->state_rows * y->state_cols);
    }
    free(layers);
    return sum;
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
    if (m->hp.head_dim % o.kv->block_elems != 0 || m->hp.v_dim % o.kv->block_elems != 0 ||
        m->hp.head_dim_swa % o.kv->block_elems != 0 || m->hp.v_dim_swa % o.kv->block_elems != 0)
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

size_t model_text_bytes(const struct model *m)
{
    size_t n = gguf_memory_bytes(m->g) + m->n_weights * sizeof *m->weights +
               m->cap_bound * sizeof *m->bound;

    if (m->tokenizer)
        n += tokenizer_memory_bytes(m->tokenizer);
    if (m->chat_template)
        n += strlen(m->chat_template) + 1;
    return alloc_page_round(n);
}

struct residency *model_residency_create(const struct model *m, const struct graph *g,
                                         const struct model_options *opt, struct ledger *l,
                                         const struct backend_ops *ops, struct backend *be,
                                         const char *who)
{
    struct residency *r = residency_create(m->g, l, ops, be, who);

    model_add_extents(m, g, r);
    residency_set_batch(r, opt->n_batch, m->hp.n_expert_used);
    return r;
}

/* Saturates: a context that no machine can hold is simply too much. */
static size_t plus(size_t a, size_t b)
{
    size_t sum;

    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

static void place(struct residency *r, size_t bytes, struct sizes *s)
{
    size_t loading = residency_loading_bytes(r);
    struct placement p;
    bool whole;

    s->fixed = loading;
    for (int i = 0; i < ACCOUNT_COUNT; i++)
        s->fixed = plus(s->fixed, s->account[i]);
    residency_floor(r, &p);
    s->floor = plus(s->fixed, p.total_bytes);
    residency_plan(r, SIZE_MAX, &p);
    s->all = plus(s->fixed, p.total_bytes);
    if (bytes < s->all)
        residency_plan(r, bytes - MIN(bytes, s->fixed), &p);
    whole = placement_is_whole(&p);
    s->account[ACCOUNT_WEIGHTS] = p.dense_bytes + (whole ? p.slots_bytes : 0);
    s->account[ACCOUNT_CACHE] = whole ? 0 : p.slots_bytes;
    s->account[ACCOUNT_STAGING] = p.staging_bytes + loading;
    s->placement = p;
    s->peak = plus(s->fixed, p.total_bytes);
    s->total = s->peak == SIZE_MAX ? SIZE_MAX : s->peak - loading;
}

int model_sizes(const struct model *m, const struct model_options *opt, size_t bytes,
                const struct backend_ops *ops, struct backend *be, struct sizes *ret,
                struct program **ret_program, struct err *err)
{
    struct sequence_layer *layers = XNEW_ARRAY(struct sequence_layer, m->hp.n_layers);
    struct sequence_layout layout = model_layout(m, opt, layers);
    struct program_options po = {
        .max_rows = opt->n_batch, .max_out = opt->n_out, .layout = &layout};
    struct graph *g = model_graph(m, opt->n_ctx);
    struct residency *residency;
    struct program *p = NULL;
    struct sizes s = {0};
    int r = graph_compile(g, &po, ops, be, &p, err);

    if (r < 0)
        goto out;
    s.account[ACCOUNT_KV] = sequence_bytes(&layout, ops, be);
    s.account[ACCOUNT_STATE] = sequence_state_bytes(&layout, ops, be);
    s.account[ACCOUNT_SCRATCH] =
        ops->alloc_bytes(be, model_scratch_bytes(p)) + alloc_page_round(program_memory_bytes(p));
    s.account[ACCOUNT_TEXT] = model_text_bytes(m);
    residency = model_residency_create(m, g, opt, NULL, ops, be, m->name);
    place(residency, bytes, &s);
    residency_destroy(residency);
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
