/* Finds the tensors of an architecture's table in the file.  See arch.h. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/model/model_priv.h"

struct name_info {
    const char *text;
    bool in_layer;
};

static const struct name_info names[TENSOR_COUNT] = {
#define NAME(id, text, in_layer, help) [TENSOR_##id] = {text, in_layer},
#include "daemon/model/names.def"
#undef NAME
};

#define NAME_TEXT 64

static size_t weight_index(int layer, enum tensor_name name, enum tensor_part part)
{
    return ((size_t)(layer + 1) * TENSOR_COUNT + name) * PART_COUNT + part;
}

const struct graph_weight *model_weight(const struct model *m, int layer, enum tensor_name name,
                                        enum tensor_part part)
{
    return &m->weights[weight_index(names[name].in_layer ? layer : -1, name, part)];
}

uint64_t model_dim(const struct hparams *hp, int layer, enum dim d)
{
    const struct hparams_layer *y = &hp->layers[layer < 0 ? 0 : layer];
    uint64_t k_dim = hparams_head_dim(hp, layer < 0 ? 0 : (size_t)layer);
    uint64_t v_dim = hparams_v_dim(hp, layer < 0 ? 0 : (size_t)layer);

    switch (d) {
    case DIM_NONE:
    case DIM_ANY: return 1;
    case DIM_EMBD: return hp->n_embd;
    case DIM_VOCAB: return hp->n_vocab;
    case DIM_Q: return y->n_heads * k_dim;
    case DIM_K: return y->n_kv_heads * k_dim;
    case DIM_V: return y->n_kv_heads * v_dim;
    case DIM_O: return y->n_heads * v_dim;
    case DIM_HEAD: return k_dim;
    case DIM_ROT_HALF: return hp->n_rot / 2;
    case DIM_FF: return y->n_ff;
    case DIM_EXPERT: return hp->n_expert;
    case DIM_FF_EXP: return hp->n_ff_exp;
    case DIM_FF_SHEXP: return hp->n_ff_shexp;
    case DIM_Q_GATED: return (uint64_t)y->n_heads * hp->head_dim * 2;
    case DIM_FF_EXP2: return (uint64_t)hp->n_ff_exp * 2;
    case DIM_CONV: return hp->ssm_conv;
    case DIM_CONV_WIDTH: return hp->conv_width;
    case DIM_SSM_INNER: return hp->ssm_inner;
    case DIM_SSM_STATE: return hp->ssm_state;
    case DIM_SSM_RANK: return hp->ssm_rank;
    case DIM_SSM_RANK2: return (uint64_t)hp->ssm_rank * 2;
    case DIM_SSM_IN: return hp->ssm_in_width;
    case DIM_SSM_X: return (uint64_t)hp->ssm_rank + 2 * (uint64_t)hp->ssm_state;
    case DIM_SSM_GROUPS: return hp->ssm_groups;
    case DIM_SSM_GROUP: return hp->ssm_groups ? hp->ssm_inner / hp->ssm_groups : 0;
    case DIM_EMBD3: return (uint64_t)hp->n_embd * 3;
    case DIM_LORA_DECAY: return hp->lora_decay;
    case DIM_LORA_RATE: return hp->lora_rate;
    case DIM_LORA_VALUE: return hp->lora_value;
    case DIM_LORA_GATE: return hp->lora_gate;
    case DIM_EXPERTS_USED: return hp->n_expert_used;
    case DIM_O_PART: return hp->n_out_groups ? y->n_heads * v_dim / hp->n_out_groups : 0;
    case DIM_O_GROUPS: return hp->n_out_groups;
    case DIM_O_LATENT: return hp->n_out_lora;
    case DIM_O_LATENTS: return (uint64_t)hp->n_out_groups * hp->n_out_lora;
    case DIM_STREAMS: return hp->n_streams;
    case DIM_STREAMS_IN: return (uint64_t)hp->n_streams * hp->n_embd;
    case DIM_STREAMS_MIX: return (uint64_t)hp->n_streams * (hp->n_streams + 2);
    case DIM_STREAMS_REST: return hp->n_streams - 1;
    case DIM_STREAMS_SQUARE: return (uint64_t)hp->n_streams * hp->n_streams;
    case DIM_LAUREL: return 64;
    case DIM_GROUP: return y->group;
    case DIM_GROUP_KEY: return k_dim * (y->indexer ? 2 : 1);
    case DIM_INDEX2: return (uint64_t)hp->index_dim * 2;
    case DIM_THREE: return 3;
    case DIM_SIX: return 6;
    case DIM_Q_LORA: return hp->n_q_lora;
    case DIM_KV_LORA: return hp->n_kv_lora;
    case DIM_KV_A: return (uint64_t)hp->n_kv_lora + hp->n_rot;
    case DIM_Q_MLA: return (uint64_t)y->n_heads * hp->k_mla;
    case DIM_NOPE: return hp->k_mla - hp->n_rot;
    case DIM_V_MLA: return hp->v_mla;
    case DIM_KV_B: return (uint64_t)y->n_heads * (hp->k_mla - hp->n_rot + hp->v_mla);
    case DIM_O_MLA: return (uint64_t)y->n_heads * hp->v_mla;
    case DIM_QKV: return y->n_heads * k_dim + y->n_kv_heads * (k_dim + v_dim);
    case DIM_GATE_UP: return 2 * (uint64_t)y->n_ff;
    case DIM_HEADS: return y->n_heads;
    case DIM_INDEX: return hp->index_dim;
    case DIM_INDEX_Q: return (uint64_t)hp->n_index_heads * hp->index_dim;
    case DIM_INDEX_HEADS: return hp->n_index_heads;
    case DIM_KV_HEADS: return y->n_kv_heads;
    case DIM_EMBD_LAYER: return hp->n_embd_layer;
    case DIM_EMBD_LAYERS: return (uint64_t)hp->n_embd_layer * hp->n_layers;
    case DIM_CTX: return hp->n_ctx_train;
    }
    return 0;
}

/* A layer has experts where the file has a router, whatever the keys say. */
static void find_routers(struct model *m)
{
    char text[NAME_TEXT];

    for (uint32_t i = 0; i < m->hp.n_layers && m->arch->moe_by_router; i++) {
        snprintf(text, sizeof text, "blk.%u.%s.weight", i, names[TENSOR_FFN_GATE_INP].text);
        m->hp.layers[i].kind &= ~(unsigned)LAYER_MOE;
        if (m->hp.n_expert && gguf_find_tensor(m->g, text))
            m->hp.layers[i].kind |= LAYER_MOE;
    }
}

bool model_wants(const struct hparams *hp, int layer, const struct tensor_row *row)
{
    unsigned kind = layer < 0 ? 0 : hp->layers[layer].kind;

    if (row->in && !(row->in & kind))
        return false;
    switch (row->need) {
    case NEED_DENSE:
    case NEED_DENSE_OPTIONAL: return !(kind & LAYER_MOE);
    case NEED_MOE:
    case NEED_MOE_OPTIONAL: return kind & LAYER_MOE;
    case NEED_SHARED: return kind & LAYER_MOE && hp->n_ff_shexp;
    case NEED_Q_LORA: return hp->n_q_lora;
    case NEED_Q_WHOLE: return !hp->n_q_lora;
    case NEED_EMBD_LAYER: return hp->n_embd_layer;
    case NEED_ABSORBED: return hp->absorbed;
    case NEED_EXPANDED: return !hp->absorbed;
    case NEED_LATER: return layer > 0;
    case NEED_INDEXER: return hp->layers[layer].indexer;
    default: return true;
    }
}

bool model_needs(enum need need)
{
    return need != NEED_OPTIONAL && need != NEED_DENSE_OPTIONAL && need != NEED_MOE_OPTIONAL;
}

/* The shape of the file, or a stack of matrices where the file has all their rows as one. */
static void shape_of(const struct hparams *hp, int layer, const struct tensor_row *row,
                     const struct gguf_tensor *t, uint64_t ret[4])
{
    memcpy(ret, t->dims, 4 * sizeof *ret);
    if (row->use != USE_STACK || t->dims[2] != 1)
        return;
    ret[2] = model_dim(hp, layer, row->dims[2]);
    if (ret[2] && ret[1] % ret[2] == 0)
        ret[1] /= ret[2];
    else
        ret[2] = 1;
}

static int check_shape(const struct hparams *hp, int layer, const struct tensor_row *row,
                       const uint64_t dims[4], const char *text, struct err *err)
{
    for (int d = 0; d < 4; d++) {
        uint64_t want = model_dim(hp, layer, row->dims[d]);

        if (dims[d] != want && row->dims[d] != DIM_ANY)
            return err_set_param(err, ERR_FORMAT, text,
                                 "tensor '%s' has %llu in dimension %d, but the metadata says %llu",
                                 text, (unsigned long long)dims[d], d, (unsigned long long)want);
    }
    return 0;
}

/* Weights are floats or blocks of them; integers and f64 are for other things. */
static bool holds_weights(const struct format *f)
{
    static const char *const others[] = {"i8", "i16", "i32", "i64", "f64"};

    for (size_t i = 0; i < ARRAY_LEN(others); i++)
        if (strcmp(f->name, others[i]) == 0)
            return false;
    return true;
}

static int check_format(const struct hparams *hp, const struct tensor_row *row,
                        const struct gguf_tensor *t, const char *text, struct err *err)
{
    if (row->use == USE_VECTOR && strcmp(t->fmt->name, "f32") != 0)
        return err_set_param(err, ERR_UNSUPPORTED, text, "tensor '%s' is %s; it must be f32", text,
                             t->fmt->name);
    if (row->use == USE_IDS && strcmp(t->fmt->name, "i32") != 0)
        return err_set_param(err, ERR_UNSUPPORTED, text, "tensor '%s' is %s; it must be i32", text,
                             t->fmt->name);
    if (row->use >= USE_STACK && !holds_weights(t->fmt))
        return err_set_param(err, ERR_UNSUPPORTED, text,
                             "tensor '%s' is %s, a type that cannot hold weights", text,
                             t->fmt->name);
    /* A layer reads its own columns of it. */
    if (row->dims[0] == DIM_EMBD_LAYERS && hp->n_embd_layer % t->fmt->block_elems != 0)
        return err_set_param(err, ERR_UNSUPPORTED, text,
                             "tensor '%s' is %s, whose blocks of %u do not divide the %u values of "
                             "a layer",
                             text, t->fmt->name, t->fmt->block_elems, hp->n_embd_layer);
    return 0;
}

static int bind_one(struct model *m, const struct tensor_row *row, int layer, struct err *err)
{
    struct graph_weight *w = &m->weights[weight_index(layer, row->name, row->part)];
    bool served =
        row->other != row->name && m->weights[weight_index(layer, row->other, PART_WEIGHT)].t.fmt;
    static const char *const ends[PART_COUNT] = {".weight", ".bias", "", ".scale"};
    const char *end = ends[row->part];
    const struct gguf_tensor *t;
    char text[NAME_TEXT];
    uint64_t dims[4];
    int r;

    if (layer >= 0)
        snprintf(text, sizeof text, "blk.%d.%s%s", layer, names[row->name].text, end);
    else
        snprintf(text, sizeof text, "%s%s", names[row->name].text, end);
    t = gguf_find_tensor(m->g, text);
    if (!t || served)
        return model_needs(row->need) && !served
                   ? err_set_param(err, ERR_FORMAT, text,
                                   "the file has no tensor '%s', which '%s' needs", text,
                                   m->arch->name)
                   : 0;
    shape_of(&m->hp, layer, row, t, dims);
    r = check_shape(&m->hp, layer, row, dims, text, err);
    if (r >= 0)
        r = check_format(&m->hp, row, t, text, err);
    if (r < 0)
        return r;
    w->t = tensor_make(t->fmt, NULL, dims[0], dims[1], dims[2], dims[3]);
    w->id = (extent_id)m->n_bound;
    ARRAY_GROW(m->bound, m->n_bound + 1, m->cap_bound);
    m->bound[m->n_bound++] = t;
    return 0;
}

static size_t n_weights(const struct model *m)
{
    return (size_t)(m->hp.n_layers + 1) * TENSOR_COUNT * PART_COUNT;
}

size_t model_bind_bytes(const struct model *m)
{
    /* a list that grows by halves, and is twice there while it does */
    return n_weights(m) * sizeof *m->weights + (3 * gguf_n_tensors(m->g) + 16) * sizeof *m->bound;
}

int model_bind(struct model *m, struct err *err)
{
    m->n_weights = n_weights(m);
    m->weights = XNEW_ARRAY(struct graph_weight, m->n_weights);
    find_routers(m);
    for (size_t i = 0; i < m->arch->n_tensors; i++) {
        const struct tensor_row *row = &m->arch->tensors[i];
        bool in_layer = names[row->name].in_layer;
        int from = in_layer ? 0 : -1;
        int to = in_layer ? (int)m->hp.n_layers : 0;

        for (int layer = from; layer < to; layer++) {
            int r = model_wants(&m->hp, layer, row) ? bind_one(m, row, layer, err) : 0;

            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* The number behind "blk." of a name that was bound; −1 where there is none. */
static int layer_of(struct view name)
{
    return view_starts(name, VIEW("blk.")) ? (int)strtol(name.p + 4, NULL, 10) : -1;
}

void model_add_extents(const struct model *m, const struct graph *g, struct residency *r)
{
    struct graph_reading *readings = XNEW_ARRAY(struct graph_reading, m->n_bound);

    graph_readings(g, m->n_bound, readings);
    for (size_t i = 0; i < m->n_bound; i++) {
        const struct gguf_tensor *t = m->bound[i];
        struct extent e = {.part = t->part,
                           .offset = t->offset,
                           .bytes = t->bytes,
                           .layer = layer_of(t->name),
                           .n_experts = readings[i].n_experts,
                           .n_rows = readings[i].by_row ? t->dims[1] : 0};

        snprintf(e.name, sizeof e.name, "%.*s", (int)t->name.len, t->name.p);
        residency_add(r, &e);
    }
    free(readings);
}

static int by_address(const void *a, const void *b)
{
    const struct gguf_tensor *x = *(const struct gguf_tensor *const *)a;
    const struct gguf_tensor *y = *(const struct gguf_tensor *const *)b;

    return x < y ? -1 : x > y;
}

void model_unused_tensors(const struct model *m, void (*fn)(void *arg, const struct gguf_tensor *t),
                          void *arg)
{
    const struct gguf_tensor **used = xmemdup(m->bound, m->n_bound * sizeof *used);

    qsort(used, m->n_bound, sizeof *used, by_address);
    for (size_t i = 0; i < gguf_n_tensors(m->g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(m->g, i);

        if (!bsearch(&t, used, m->n_bound, sizeof *used, by_address))
            fn(arg, t);
    }
    free(used);
}
