/* Plans and files as JSON; see describe.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/engine/describe.h"
#include "daemon/engine/engine_priv.h"
#include "daemon/engine/outlook.h"
#include "daemon/engine/parse.h"
#include "daemon/engine/suspect.h"

/* An array of metadata (a vocabulary) is shown by its first elements. */
#define ARRAY_SHOWN 16

void look_close(struct look *l)
{
    model_close(l->model);
}

int look_open(const struct engine *e, const struct job *j, struct look *ret, struct err *err)
{
    const struct model_room room = {.ledger = e->opt.ledger, .who = "looking at a model file"};

    *ret = (struct look){.ledger = e->opt.ledger};
    return model_open_within(j->target, &room, &ret->model, err);
}

static json_t *size_value(size_t n)
{
    return json_integer((json_int_t)MIN(n, (size_t)INT64_MAX));
}

static json_t *head(const struct job *j, const struct model_info *info)
{
    json_t *o = json_object();

    json_object_set_new(o, "model", json_text(j->name, view_of(j->name).len));
    json_object_set_new(o, "path", json_text(j->target, view_of(j->target).len));
    json_object_set_new(o, "title", json_text(info->name, view_of(info->name).len));
    json_object_set_new(o, "arch", json_string(info->arch));
    json_object_set_new(o, "type", json_string(info->type));
    json_object_set_new(o, "n_params", size_value(info->n_params));
    json_object_set_new(o, "file_bytes", size_value(info->file_bytes));
    json_object_set_new(o, "n_ctx_train", size_value(info->n_ctx_train));
    json_object_set_new(o, "n_layers", size_value(info->n_layers));
    json_object_set_new(o, "n_embd", size_value(info->n_embd));
    json_object_set_new(o, "n_vocab", size_value(info->n_vocab));
    json_object_set_new(o, "n_heads", size_value(info->n_heads));
    json_object_set_new(o, "n_kv_heads", size_value(info->n_kv_heads));
    json_object_set_new(o, "n_experts", size_value(info->n_experts));
    json_object_set_new(o, "n_experts_used", size_value(info->n_experts_used));
    return o;
}

/* -- plan -------------------------------------------------------------------------------------- */

/* How it runs when not all is resident. */
static void add_placement(json_t *o, const struct model_plan *p)
{
    json_object_set_new(o, "mode", json_string(placement_mode_name(p->placement.mode)));
    json_object_set_new(o, "all", size_value(p->all));
    json_object_set_new(o, "n_batch", size_value(p->n_batch));
    json_object_set_new(o, "slots", size_value(p->placement.n_slots));
}

static json_t *plan_json(const struct job *j, const struct model_info *info,
                         const struct model_plan *p, const struct format *kv)
{
    json_t *o = head(j, info), *accounts = json_object();

    for (int i = 0; i < ACCOUNT_COUNT; i++)
        json_object_set_new(accounts, ledger_account_name((enum account)i),
                            size_value(p->account[i]));
    json_object_set_new(o, "n_ctx", size_value(p->n_ctx));
    json_object_set_new(o, "ctx_capped", json_boolean(p->ctx_capped));
    json_object_set_new(o, "kv", json_string(kv ? kv->name : "f16"));
    json_object_set_new(o, "fits", json_boolean(p->fits));
    json_object_set_new(o, "total", size_value(p->total));
    json_object_set_new(o, "peak", size_value(p->peak));
    json_object_set_new(o, "floor", size_value(p->floor));
    json_object_set_new(o, "free", size_value(p->free_bytes));
    json_object_set_new(o, "accounts", accounts);
    json_object_set_new(o, "bytes_per_token", json_real(p->bytes_per_token));
    if (!p->fits)
        json_object_set_new(o, "advice", json_text(p->advice, strlen(p->advice)));
    return o;
}

int describe_plan(struct engine *e, struct job *j, struct err *err)
{
    struct model_options opt = {
        .n_ctx = j->n_ctx, .n_batch = e->opt.n_batch, .n_out = 1, .others = &j->others};
    struct outlook *o;
    struct model_plan p;
    struct look l;
    int r = look_open(e, j, &l, err);

    if (r < 0)
        return r;
    j->outlook = o = XNEW(struct outlook);
    if (j->kv)
        opt.kv = names_kv_format(j->kv, NULL);
    model_info(l.model, &o->info);
    r = room_foresee(&e->opt, l.model, &opt, &j->offers, &p, err);
    if (r >= 0)
        r = model_work(l.model, &p, opt.kv, e->opt.backend_ops, e->opt.backend, &o->work, err);
    if (r >= 0) {
        p.free_bytes = j->offers.free + (p.fits ? 0 : room_offered_bytes(&j->offers));
        o->n_ctx = p.n_ctx;
        o->n_batch = p.n_batch;
        o->placement = p.placement;
        outlook_add_parts(o, model_gguf(l.model));
        o->result = plan_json(j, &o->info, &p, opt.kv);
        add_placement(o->result, &p);
    }
    look_close(&l);
    return r;
}

/* -- show -------------------------------------------------------------------------------------- */

static json_t *number(enum gguf_type type, const struct gguf_value *v, size_t i)
{
    if (type == GGUF_BOOL)
        return json_boolean(gguf_elem_i64(v, i) != 0);
    if (gguf_is_int(type))
        return json_integer(gguf_elem_i64(v, i));
    /* Infinities and NaN have no JSON. */
    {
        json_t *real = json_real(gguf_elem_f64(v, i));

        return real ? real : json_null();
    }
}

static json_t *element(const struct gguf_value *v, enum gguf_type type, size_t i)
{
    if (type == GGUF_STRING)
        return json_text(v->strings[i].p, v->strings[i].len);
    return number(type, v, i);
}

static json_t *value_json(const struct gguf_value *v)
{
    json_t *o, *first;

    if (v->type != GGUF_ARRAY)
        return element(v, v->type, 0);
    first = json_array();
    for (size_t i = 0; i < v->n && i < ARRAY_SHOWN; i++)
        json_array_append_new(first, element(v, v->elem_type, i));
    if (v->n <= ARRAY_SHOWN)
        return first;
    o = json_object();
    json_object_set_new(o, "type", json_string(gguf_type_name(v->elem_type)));
    json_object_set_new(o, "n", size_value(v->n));
    json_object_set_new(o, "first", first);
    return o;
}

static json_t *metadata_json(const struct gguf *g)
{
    json_t *o = json_object();

    for (size_t i = 0; i < gguf_n_values(g); i++) {
        const struct gguf_value *v = gguf_value_at(g, i);
        char *key = view_dup(v->key);

        /* A key that is no UTF-8 cannot be shown. */
        json_object_set_new(o, key, value_json(v));
        free(key);
    }
    return o;
}

static json_t *tensor_json(const struct gguf_tensor *t)
{
    json_t *o = json_object(), *dims = json_array();

    for (unsigned i = 0; i < t->n_dims; i++)
        json_array_append_new(dims, json_integer((json_int_t)t->dims[i]));
    json_object_set_new(o, "name", json_text(t->name.p, t->name.len));
    json_object_set_new(o, "type", json_string(t->fmt->name));
    json_object_set_new(o, "dims", dims);
    json_object_set_new(o, "bytes", json_integer((json_int_t)t->bytes));
    return o;
}

static void add_unused(void *arg, const struct gguf_tensor *t)
{
    json_array_append_new(arg, json_text(t->name.p, t->name.len));
}

static void add_layers(void *arg, int from, int to, const char *kind)
{
    json_array_append_new(arg, json_pack("{s:i, s:i, s:s}", "from", from, "to", to, "kind", kind));
}

/* Bytes of tensors by type, in order of first sight. */
static json_t *types_json(const struct gguf *g)
{
    json_t *o = json_object();

    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);
        json_int_t before = json_integer_value(json_object_get(o, t->fmt->name));

        json_object_set_new(o, t->fmt->name, json_integer(before + (json_int_t)t->bytes));
    }
    return o;
}

/*
 * Of a text, as JSON: a byte that is no UTF-8 becomes three, and a control character
 * six when it is written down; both are there for a moment.  Of a value or a tensor,
 * its objects.
 */
#define SHOWN_PER_BYTE   ((size_t)9)
#define SHOWN_PER_VALUE  ((size_t)512 + ARRAY_SHOWN * (size_t)64)
#define SHOWN_PER_TENSOR ((size_t)1024)

/* At most, of all that is shown of a file. */
static size_t shown_bytes(const struct gguf *g, const struct model_info *info)
{
    size_t text = info->chat_template ? strlen(info->chat_template) : 0;

    for (size_t i = 0; i < gguf_n_values(g); i++) {
        const struct gguf_value *v = gguf_value_at(g, i);
        bool array = v->type == GGUF_ARRAY;

        text += v->key.len;
        if ((array ? v->elem_type : v->type) == GGUF_STRING)
            for (size_t k = 0; k < (array ? MIN(v->n, (size_t)ARRAY_SHOWN) : 1); k++)
                text += v->strings[k].len;
    }
    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        text += 2 * gguf_tensor_at(g, i)->name.len; /* once more if it is not used */
    return SHOWN_PER_BYTE * text + SHOWN_PER_VALUE * gguf_n_values(g) +
           SHOWN_PER_TENSOR * gguf_n_tensors(g);
}

static int reserve_shown(void *ledger, size_t bytes, struct err *err)
{
    return ledger_reserve(ledger, POOL_RAM, ACCOUNT_REQUESTS, bytes, "showing a model file", err);
}

static void release_shown(void *ledger, size_t bytes)
{
    ledger_release(ledger, POOL_RAM, ACCOUNT_REQUESTS, bytes);
}

/* Until the answer has been handed on. */
static int charge_shown(struct job *j, const struct look *l, struct err *err)
{
    struct model_info info;
    size_t bytes;
    int r;

    model_info(l->model, &info);
    bytes = shown_bytes(model_gguf(l->model), &info);
    r = reserve_shown(l->ledger, bytes, err);
    if (r >= 0) {
        j->charged_to = l->ledger;
        j->charged_bytes = bytes;
    }
    return r;
}

int describe_file(struct engine *e, struct job *j, json_t **ret, struct err *err)
{
    struct parse_room room = {reserve_shown, release_shown, e->opt.ledger};
    json_t *o, *tensors, *unused, *layers;
    const struct gguf *g;
    struct model_info info;
    struct look l;
    int r = look_open(e, j, &l, err);

    if (r < 0)
        return r;
    r = charge_shown(j, &l, err);
    if (r < 0) {
        look_close(&l);
        return r;
    }
    tensors = json_array();
    unused = json_array();
    layers = json_array();
    g = model_gguf(l.model);
    model_info(l.model, &info);
    for (size_t i = 0; i < gguf_n_tensors(g); i++)
        json_array_append_new(tensors, tensor_json(gguf_tensor_at(g, i)));
    model_unused_tensors(l.model, add_unused, unused);
    model_layer_kinds(l.model, add_layers, layers);
    o = head(j, &info);
    json_object_set_new(o, "parts", json_integer(gguf_parts(g)));
    json_object_set_new(o, "gguf_version", json_integer(gguf_version(g)));
    json_object_set_new(o, "kv_bytes_per_token", size_value(info.kv_bytes_per_token));
    json_object_set_new(o, "state_bytes", size_value(info.state_bytes));
    json_object_set_new(o, "types", types_json(g));
    json_object_set_new(o, "layers", layers);
    json_object_set_new(o, "suspicious", suspect_list(l.model, &room));
    json_object_set_new(o, "metadata", metadata_json(g));
    json_object_set_new(o, "chat_template",
                        info.chat_template
                            ? json_text(info.chat_template, view_of(info.chat_template).len)
                            : json_null());
    json_object_set_new(o, "tensors", tensors);
    json_object_set_new(o, "unused_tensors", unused);
    look_close(&l);
    *ret = o;
    return 0;
}
