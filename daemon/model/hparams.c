/* Reads and checks the numbers of the metadata.  See hparams.h. */

#include "daemon/model/hparams.h"

#include <stdio.h>

#include "daemon/model/arch.h"

enum key_type {
    TYPE_U32,
    TYPE_F32,
    TYPE_BOOL,
    TYPE_LAYERS,
    TYPE_WINDOWS,
    TYPE_FLAGS,
    TYPE_U32X4,
    TYPE_LIMITS
};

struct key_info {
    const char *name;
    enum key_type type;
    size_t at;    /* in struct hparams */
    size_t layer; /* in struct hparams_layer, of TYPE_LAYERS */
    double lo, hi;
};

#define IN_LAYER_U32(field)     0
#define IN_LAYER_F32(field)     0
#define IN_LAYER_BOOL(field)    0
#define IN_LAYER_WINDOWS(field) 0
#define IN_LAYER_U32X4(field)   0
#define IN_LAYER_FLAGS(field)   offsetof(struct hparams_layer, field)
#define IN_LAYER_LIMITS(field)  offsetof(struct hparams_layer, field)
#define IN_LAYER_LAYERS(field)  offsetof(struct hparams_layer, field)

static const struct key_info keys[KEY_COUNT] = {
#define KEY(id, name, type, field, lo, hi)                                                         \
    [KEY_##id] = {name, TYPE_##type, offsetof(struct hparams, field), IN_LAYER_##type(field),      \
                  lo,   hi},
#include "daemon/model/keys.def"
#undef KEY
};

#define KEY_TEXT 128

/* Read by read_scaling(): a word, not a number. */
#define KEY_SCALING_TYPE "rope.scaling.type"

static void key_text(const struct arch *arch, const char *name, char text[KEY_TEXT])
{
    snprintf(text, KEY_TEXT, "%s.%s", arch->name, name);
}

/* An array of one integer for each layer. */
static int check_array(const struct gguf_value *v, const char *text, const struct key_info *k,
                       uint32_t n_layers, struct err *err)
{
    if (!gguf_is_int(v->elem_type))
        return err_set_param(err, ERR_FORMAT, text, "key '%s' is an array of %s, not of integers",
                             text, gguf_type_name(v->elem_type));
    if (v->n != n_layers)
        return err_set_param(err, ERR_FORMAT, text, "key '%s' has %zu values for %u layers", text,
                             v->n, n_layers);
    for (size_t i = 0; i < v->n; i++) {
        int64_t x = gguf_elem_i64(v, i);

        if (x < (int64_t)k->lo || x > (int64_t)k->hi)
            return err_set_param(err, ERR_FORMAT, text,
                                 "key '%s' is %lld in layer %zu; it must be %.0f to %.0f", text,
                                 (long long)x, i, k->lo, k->hi);
    }
    return 0;
}

/* All alike: that integer. */
static int read_alike(const struct gguf_value *v, const char *text, const struct key_info *k,
                      uint32_t n_layers, uint32_t *out, struct err *err)
{
    int r = check_array(v, text, k, n_layers, err);

    if (r < 0)
        return r;
    for (size_t i = 1; i < v->n; i++)
        if (gguf_elem_i64(v, i) != gguf_elem_i64(v, 0))
            return err_set_param(err, ERR_UNSUPPORTED, text,
                                 "key '%s' differs from layer to layer; this architecture is "
                                 "supported with one value for all",
                                 text);
    *out = (uint32_t)gguf_elem_i64(v, 0);
    return 1;
}

/* Up to four numbers; those that are not there are 0. */
static int read_four(const struct gguf_value *v, const char *text, const struct key_info *k,
                     uint32_t *out, struct err *err)
{
    if (!v)
        return 0;
    if (v->type != GGUF_ARRAY || !gguf_is_int(v->elem_type) || v->n > 4)
        return err_set_param(err, ERR_FORMAT, text, "key '%s' must be an array of up to 4 integers",
                             text);
    for (size_t i = 0; i < v->n; i++) {
        int64_t x = gguf_elem_i64(v, i);

        if (x < (int64_t)k->lo || x > (int64_t)k->hi)
            return err_set_param(err, ERR_FORMAT, text,
                                 "key '%s' holds %lld; it must be %.0f to %.0f", text, (long long)x,
                                 k->lo, k->hi);
        out[i] = (uint32_t)x;
    }
    return 1;
}

static uint32_t *in_layer(struct hparams *hp, size_t i, const struct key_info *k)
{
    return (uint32_t *)(void *)((char *)&hp->layers[i] + k->layer);
}

/* One value for all layers, or an array of one for each. */
static int read_layers(const struct gguf *g, const struct gguf_value *v, const char *text,
                       const struct key_info *k, struct hparams *hp, struct err *err)
{
    uint32_t all = 0;
    int r;

    if (!v || v->type != GGUF_ARRAY) {
        r = gguf_get_u32(g, text, (uint32_t)k->lo, (uint32_t)k->hi, &all, err);
        for (size_t i = 0; i < hp->n_layers && r > 0; i++)
            *in_layer(hp, i, k) = all;
        return r;
    }
    r = check_array(v, text, k, hp->n_layers, err);
    for (size_t i = 0; i < hp->n_layers && r >= 0; i++)
        *in_layer(hp, i, k) = (uint32_t)gguf_elem_i64(v, i);
    return r < 0 ? r : 1;
}

static float *limit_in_layer(struct hparams *hp, size_t i, const struct key_info *k)
{
    return (float *)(void *)((char *)&hp->layers[i] + k->layer);
}

/* One number for all layers, or an array of one for each. */
static int read_limits(const struct gguf *g, const struct gguf_value *v, const char *text,
                       const struct key_info *k, struct hparams *hp, struct err *err)
{
    float all = 0.0f;
    int r;

    if (!v || v->type != GGUF_ARRAY) {
        r = gguf_get_f32(g, text, (float)k->lo, (float)k->hi, &all, err);
        for (size_t i = 0; i < hp->n_layers && r > 0; i++)
            *limit_in_layer(hp, i, k) = all;
        return r;
    }
    if (v->n != hp->n_layers || (v->elem_type != GGUF_F32 && v->elem_type != GGUF_F64))
        return err_set_param(err, ERR_FORMAT, text,
                             "key '%s' has %zu values of %s; it must have a float for each of %u "
                             "layers",
                             text, v->n, gguf_type_name(v->elem_type), hp->n_layers);
    for (size_t i = 0; i < v->n; i++) {
        double x = gguf_elem_f64(v, i);

        if (!(x >= k->lo && x <= k->hi))
            return err_set_param(err, ERR_FORMAT, text,
                                 "key '%s' is %g in layer %zu; it must be %g to %g", text, x, i,
                                 k->lo, k->hi);
        *limit_in_layer(hp, i, k) = (float)x;
    }
    return 1;
}

/* One boolean for each layer, those for drafting aside or not. */
static int read_flags(const struct gguf_value *v, const char *text, struct hparams *hp,
                      size_t field, struct err *err)
{
    if (v->elem_type != GGUF_BOOL && !gguf_is_int(v->elem_type))
        return err_set_param(err, ERR_FORMAT, text, "key '%s' is an array of %s, not of booleans",
                             text, gguf_type_name(v->elem_type));
    if (v->n != hp->n_layers && v->n + hp->n_nextn != hp->n_layers)
        return err_set_param(err, ERR_FORMAT, text, "key '%s' has %zu values for %u layers", text,
                             v->n, hp->n_layers);
    for (size_t i = 0; i < v->n; i++)
        *(bool *)(void *)((char *)&hp->layers[i] + field) = gguf_elem_i64(v, i) != 0;
    return 1;
}

/* One boolean for each layer: does a window bound what it sees? */
static int read_windows(const struct gguf_value *v, const char *text, struct hparams *hp,
                        struct err *err)
{
    hp->swa_by_layer = true;
    return read_flags(v, text, hp, offsetof(struct hparams_layer, window), err);
}

/* An array of flags, or nothing. */
static int read_flag_key(const struct gguf *g, const struct gguf_value *v, const char *text,
                         const struct key_info *k, struct hparams *hp, struct err *err)
{
    bool all;

    if (v && v->type == GGUF_ARRAY)
        return read_flags(v, text, hp, k->layer, err);
    return gguf_get_bool(g, text, &all, err); /* one for all says nothing that is not known */
}

static int read_key(const struct gguf *g, const struct arch *arch, const struct key_row *row,
                    struct hparams *hp, struct err *err)
{
    const struct key_info *k = &keys[row->key];
    void *field = (char *)hp + k->at;
    const struct gguf_value *v;
    char text[KEY_TEXT];
    int r;

    key_text(arch, k->name, text);
    v = gguf_find(g, text);
    if (k->type == TYPE_U32X4)
        r = read_four(v, text, k, field, err);
    else if (k->type == TYPE_LIMITS)
        r = read_limits(g, v, text, k, hp, err);
    else if (k->type == TYPE_LAYERS)
        r = read_layers(g, v, text, k, hp, err);
    else if (v && v->type == GGUF_ARRAY && k->type == TYPE_U32 && row->key != KEY_BLOCK_COUNT)
        r = read_alike(v, text, k, hp->n_layers, field, err);
    else if (v && v->type == GGUF_ARRAY && k->type == TYPE_WINDOWS)
        r = read_windows(v, text, hp, err);
    else if (k->type == TYPE_FLAGS)
        r = read_flag_key(g, v, text, k, hp, err);
    else if (k->type == TYPE_BOOL)
        r = gguf_get_bool(g, text, field, err);
    else if (k->type == TYPE_U32 || k->type == TYPE_WINDOWS)
        r = gguf_get_u32(g, text, (uint32_t)k->lo, (uint32_t)k->hi, field, err);
    else
        r = gguf_get_f32(g, text, (float)k->lo, (float)k->hi, field, err);
    if (r < 0)
        return r;
    if (r == 0 && row->required)
        return err_set_param(err, ERR_FORMAT, text, "the file has no key '%s', which '%s' needs",
                             text, arch->name);
    hp->has[row->key] |= r > 0;
    return 0;
}

static int read_scaling(const struct gguf *g, const struct arch *arch, struct hparams *hp,
                        struct err *err)
{
    struct view type = {0};
    char text[KEY_TEXT];
    int r;

    key_text(arch, KEY_SCALING_TYPE, text);
    r = gguf_get_string(g, text, &type, err);
    if (r < 0)
        return r;
    if (r == 0 || view_is(type, "linear"))
        hp->rope_scaling = ROPE_SCALING_LINEAR; /* by a factor that is 1 unless said */
    else if (view_is(type, "none"))
        hp->rope_scaling = ROPE_SCALING_NONE;
    else if (view_is(type, "yarn"))
        hp->rope_scaling = ROPE_SCALING_YARN;
    else if (view_is(type, "longrope") && arch->longrope)
        hp->rope_scaling = ROPE_SCALING_LONG;
    else
        return err_set_param(err, ERR_UNSUPPORTED, text,
                             "RoPE scaling '%.*s' (key '%s') is not known; known are none, linear, "
                             "yarn",
                             (int)MIN(type.len, 40), type.p, text);
    if (hp->rope_scaling == ROPE_SCALING_YARN && hp->rope_factor < 1.0f)
        return err_set_param(err, ERR_FORMAT, text,
                             "YaRN with a factor of %g, below 1, has no meaning",
                             (double)hp->rope_factor);
    return 0;
}

/* Known files say what multiplies YaRN's magnitude by another key, and readers differ on this one. */
static int check_yarn(const struct hparams *hp, const struct arch *arch, struct err *err)
{
    char text[KEY_TEXT];

    if (!hp->has[KEY_YARN_ATTN_FACTOR] || hp->yarn_attn_factor == 1.0f)
        return 0;
    key_text(arch, keys[KEY_YARN_ATTN_FACTOR].name, text);
    return err_set_param(err, ERR_UNSUPPORTED, text,
                         "'%s' is %g; only 1 is supported, and '%s.%s' for a factor", text,
                         (double)hp->yarn_attn_factor, arch->name, keys[KEY_ROPE_ATTN_FACTOR].name);
}

static int derive_nextn(struct hparams *hp, const struct arch *arch, struct err *err)
{
    if (hp->n_nextn >= hp->n_layers)
        return err_set(err, ERR_FORMAT, "'%s.%s' is %u, but the file has %u layers in all",
                       arch->name, keys[KEY_NEXTN_LAYERS].name, hp->n_nextn, hp->n_layers);
    hp->n_layers -= hp->n_nextn;
    return 0;
}

/* Attention in all, and experts, if there are any, in every moe_step-th layer after the lead. */
static unsigned usual_kind(const struct hparams *hp, uint32_t layer)
{
    bool moe = hp->n_expert && layer >= hp->n_dense_lead && (layer + 1) % hp->moe_step == 0;

    return LAYER_ATTENTION | (moe ? (unsigned)LAYER_MOE : 0);
}

/* Where the file does not say it by layer, the last of every period sees all. */
static void derive_windows(struct hparams *hp, const struct arch *arch)
{
    uint32_t period = hp->has[KEY_SWA_PATTERN] ? hp->swa_period : arch->swa_period;

    if (!hp->has[KEY_SWA_WINDOW])
        hp->n_swa = arch->swa_window;
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        struct hparams_layer *y = &hp->layers[i];

        if (!hp->swa_by_layer)
            y->window = period == 0 || i % period < period - 1;
        y->window &= hp->n_swa > 0;
    }
    if (!hp->has[KEY_ROPE_BASE_SWA])
        hp->rope_base_swa = arch->swa_rope_base > 0.0f ? arch->swa_rope_base : hp->rope_base;
}

/* What each layer does, and the most of what its numbers are. */
static int derive_layers(struct hparams *hp, const struct arch *arch, struct err *err)
{
    for (uint32_t i = 0; i < hp->n_layers; i++) {
        struct hparams_layer *y = &hp->layers[i];

        if (!hp->has[KEY_HEAD_COUNT_KV])
            y->n_kv_heads = y->n_heads;
        y->kind = arch->kind ? arch->kind(hp, (int)i) : usual_kind(hp, i);
        if (y->window && y->kind & (LAYER_ATTENTION | LAYER_SHARED))
            y->kind |= LAYER_WINDOW;
        hp->n_heads = MAX(hp->n_heads, y->n_heads);
        hp->n_kv_heads = MAX(hp->n_kv_heads, y->n_kv_heads);
        hp->n_ff = MAX(hp->n_ff, y->n_ff);
        if (y->kind & (LAYER_ATTENTION | LAYER_SHARED) &&
            (!y->n_kv_heads || y->n_kv_heads > y->n_heads || y->n_heads % y->n_kv_heads != 0))
            return err_set(err, ERR_FORMAT,
                           "%u heads cannot share %u KV heads evenly ('%s.%s', layer %u)",
                           y->n_heads, y->n_kv_heads, arch->name, keys[KEY_HEAD_COUNT_KV].name, i);
    }
    return 0;
}

static int derive_heads(struct hparams *hp, const struct arch *arch, struct err *err)
{
    if (!hp->n_heads)
        return 0; /* no layer has attention */
    if (!hp->has[KEY_KEY_LENGTH]) {
        if (hp->n_embd % hp->n_heads != 0)
            return err_set(err, ERR_FORMAT,
                           "an embedding of %u does not divide among %u heads, and the file has no "
                           "'%s.%s'",
                           hp->n_embd, hp->n_heads, arch->name, keys[KEY_KEY_LENGTH].name);
        hp->head_dim = hp->n_embd / hp->n_heads;
    }
    if (hp->head_dim > (uint32_t)keys[KEY_KEY_LENGTH].hi)
        return err_set(err, ERR_FORMAT, "heads of %u values are wider than %.0f", hp->head_dim,
                       keys[KEY_KEY_LENGTH].hi);
    if (!hp->has[KEY_VALUE_LENGTH])
        hp->v_dim = hp->head_dim;
    if (!hp->has[KEY_ROPE_DIMENSIONS])
        hp->n_rot = hp->head_dim;
    if (hp->n_rot % 2 != 0 || hp->n_rot > hp->head_dim || hp->n_rot == 0)
        return err_set(err, ERR_FORMAT,
                       "RoPE over %u values ('%s.%s') must be even and within a head of %u",
                       hp->n_rot, arch->name, keys[KEY_ROPE_DIMENSIONS].name, hp->head_dim);
    return 0;
}

/* Heads of the layers with a window are as the others where the file has nothing of their own. */
static int derive_window_heads(struct hparams *hp, const struct arch *arch, struct err *err)
{
    if (!hp->has[KEY_KEY_LENGTH_SWA])
        hp->head_dim_swa = hp->head_dim;
    if (!hp->has[KEY_VALUE_LENGTH_SWA])
        hp->v_dim_swa = hp->has[KEY_KEY_LENGTH_SWA] ? hp->head_dim_swa : hp->v_dim;
    if (!hp->has[KEY_ROPE_DIMENSIONS_SWA])
        hp->n_rot_swa = hp->has[KEY_KEY_LENGTH_SWA] ? hp->head_dim_swa : hp->n_rot;
    if (hp->n_rot_swa % 2 != 0 || hp->n_rot_swa > hp->head_dim_swa)
        return err_set(
            err, ERR_FORMAT, "RoPE over %u values ('%s.%s') must be even and within a head of %u",
            hp->n_rot_swa, arch->name, keys[KEY_ROPE_DIMENSIONS_SWA].name, hp->head_dim_swa);
    return 0;
}

static int derive_experts(struct hparams *hp, const struct arch *arch, struct err *err)
{
    if (!hp->n_expert) {
        if (hp->n_expert_used)
            return err_set(err, ERR_FORMAT, "'%s.%s' is %u, but the file has no experts",
                           arch->name, keys[KEY_EXPERT_USED_COUNT].name, hp->n_expert_used);
        return 0;
    }
    if (!hp->n_expert_used || hp->n_expert_used > hp->n_expert)
        return err_set(err, ERR_FORMAT, "'%s.%s' is %u; of %u experts it must be 1 to %u",
                       arch->name, keys[KEY_EXPERT_USED_COUNT].name, hp->n_expert_used,
                       hp->n_expert, hp->n_expert);
    if (hp->n_group > 1 &&
        (hp->n_expert % hp->n_group != 0 || !hp->n_group_used || hp->n_group_used > hp->n_group ||
         hp->n_expert_used > hp->n_expert / hp->n_group * hp->n_group_used))
        return err_set(err, ERR_FORMAT,
                       "'%s.%s' is %u: of %u experts, %u in use, %u groups in use is impossible",
                       arch->name, keys[KEY_EXPERT_GROUPS].name, hp->n_group, hp->n_expert,
                       hp->n_expert_used, hp->n_group_used);
    return 0;
}

static int derive_vocab(struct hparams *hp, const struct arch *arch, uint64_t vocab,
                        struct err *err)
{
    if (vocab > (uint64_t)keys[KEY_VOCAB_SIZE].hi)
        return err_set(err, ERR_FORMAT, "a vocabulary of %llu tokens is more than %.0f",
                       (unsigned long long)vocab, keys[KEY_VOCAB_SIZE].hi);
    if (vocab)
        hp->n_vocab = (uint32_t)vocab;
    if (!hp->n_vocab)
        return err_set(err, ERR_FORMAT, "the file has neither a vocabulary nor a key '%s.%s'",
                       arch->name, keys[KEY_VOCAB_SIZE].name);
    return 0;
}

/* A number of shared experts means something where the family's table has tensors for them. */
static int check_shared(const struct hparams *hp, const struct arch *arch, struct err *err)
{
    bool by_count = !hp->has[KEY_SHARED_FF];

    if (!hp->n_ff_shexp)
        return 0;
    for (size_t i = 0; i < arch->n_tensors; i++)
        if (arch->tensors[i].name == TENSOR_FFN_UP_SHEXP)
            return 0;
    return err_set(err, ERR_UNSUPPORTED, "'%s.%s' is %u, but '%s' has no shared experts",
                   arch->name, keys[by_count ? KEY_EXPERT_SHARED_COUNT : KEY_SHARED_FF].name,
                   by_count ? hp->n_shared : hp->n_ff_shexp, arch->name);
}

int hparams_read(const struct gguf *g, const struct arch *arch, uint64_t vocab, struct hparams *ret,
                 struct err *err)
{
    struct hparams hp = {.rope_base = 10000.0f,
                         .rope_factor = 1.0f,
                         .rope_attn_factor = 1.0f,
                         .yarn_ext_factor = 1.0f,
                         .yarn_attn_factor = 1.0f,
                         .yarn_beta_fast = 32.0f,
                         .yarn_beta_slow = 1.0f,
                         .moe_step = 1,
                         .embedding_scale = 1.0f,
                         .residual_scale = 1.0f,
                         .logit_scale = 1.0f,
                         .rope_finetuned = true,
                         .expert_scale = 1.0f};
    int r;

    /* BLOCK_COUNT stands first in every table: arrays are checked against it. */
    for (size_t i = 0; i < arch->n_keys; i++) {
        r = read_key(g, arch, &arch->keys[i], &hp, err);
        if (r < 0)
            return r;
    }
    /* Each layer has tensors of its own: a count beyond them would only size tables. */
    if (hp.n_layers > gguf_n_tensors(g))
        return err_set(err, ERR_FORMAT, "'%s.%s' says %u layers, but the file has %zu tensors",
                       arch->name, keys[KEY_BLOCK_COUNT].name, hp.n_layers, gguf_n_tensors(g));
    if (!hp.has[KEY_ROPE_ORIGINAL])
        hp.n_ctx_orig = hp.n_ctx_train;
    r = read_scaling(g, arch, &hp, err);
    if (r >= 0)
        r = check_yarn(&hp, arch, err);
    if (r >= 0)
        r = derive_vocab(&hp, arch, vocab, err);
    if (r >= 0)
        r = derive_nextn(&hp, arch, err);
    if (r >= 0)
        derive_windows(&hp, arch);
    if (r >= 0)
        r = derive_layers(&hp, arch, err);
    if (r >= 0)
        r = derive_heads(&hp, arch, err);
    if (r >= 0)
        r = derive_window_heads(&hp, arch, err);
    if (r >= 0)
        r = derive_experts(&hp, arch, err);
    if (r >= 0 && arch->check)
        r = arch->check(&hp, err);
    if (r >= 0)
        r = check_shared(&hp, arch, err);
    if (r >= 0 && hp.pooling == POOLING_RANK)
        r = err_set(err, ERR_UNSUPPORTED,
                    "'%s.%s' is %d: the file is a reranker, which this version cannot run",
                    arch->name, keys[KEY_POOLING].name, POOLING_RANK);
    if (r < 0)
        return r;
    *ret = hp;
    return 0;
}

bool hparams_reads(const struct arch *arch, struct view name)
{
    for (size_t i = 0; i < arch->n_keys; i++)
        if (view_is(name, keys[arch->keys[i].key].name))
            return true;
    return view_is(name, KEY_SCALING_TYPE);
}
