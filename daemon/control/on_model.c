/* Methods about models: list, load, unload, show, verify, plan. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "common/log.h"
#include "daemon/control/control_priv.h"

static json_t *json_of_reads(const struct model_reads *r)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "wanted",
                     (json_int_t)r->wanted, "hit", (json_int_t)r->hit, "read", (json_int_t)r->read,
                     "over_read", (json_int_t)r->over_read, "read_ahead", (json_int_t)r->read_ahead,
                     "read_ahead_unused", (json_int_t)r->read_ahead_unused, "uses",
                     (json_int_t)r->uses, "hits", (json_int_t)r->hits, "wait_ms", r->wait_ms,
                     "device_mb_per_s", r->device_mb_per_s);
}

json_t *json_of_model(const struct model_status *m)
{
    json_t *o = json_pack("{s:s, s:s, s:s, s:s, s:s}", "name", m->name, "path", m->path, "state",
                          model_state_name(m->state), "arch", m->arch, "type", m->type);

    json_object_set_new(o, "file_bytes", json_integer((json_int_t)m->file_bytes));
    json_object_set_new(o, "stage",
                        m->loaded ? json_string(model_stage_name(m->stage)) : json_null());
    json_object_set_new(o, "n_params", json_integer((json_int_t)m->n_params));
    json_object_set_new(o, "n_ctx", json_integer((json_int_t)m->n_ctx));
    json_object_set_new(o, "n_ctx_train", json_integer((json_int_t)m->n_ctx_train));
    json_object_set_new(o, "kv", json_string(m->kv));
    json_object_set_new(o, "resident_bytes", json_integer((json_int_t)m->resident_bytes));
    json_object_set_new(o, "total_bytes", json_integer((json_int_t)m->total_bytes));
    json_object_set_new(o, "charged_bytes", json_integer((json_int_t)m->charged_bytes));
    json_object_set_new(o, "progress", json_integer((json_int_t)m->progress));
    json_object_set_new(o, "total", json_integer((json_int_t)m->total));
    json_object_set_new(o, "idle_ms", json_integer(m->idle_ms));
    json_object_set_new(o, "until_ms", json_integer(m->until_ms));
    json_object_set_new(o, "pin", json_boolean(m->pin));
    json_object_set_new(o, "busy", json_boolean(m->busy));
    json_object_set_new(o, "pp_per_second", json_real(m->pp_per_s));
    json_object_set_new(o, "tg_per_second", json_real(m->tg_per_s));
    json_object_set_new(o, "reads", json_of_reads(&m->reads));
    json_object_set_new(o, "error",
                        *m->error ? json_text(m->error, strlen(m->error)) : json_null());
    return o;
}

static bool is_loaded(enum model_state s)
{
    return s == MODEL_READY || s == MODEL_LOADING || s == MODEL_DRAINING;
}

int on_model_list(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct engine *e = c->peer->control->engine;
    size_t n = engine_models(e, NULL, 0);
    struct model_status *list = XNEW_ARRAY(struct model_status, n);
    json_t *models = json_array();
    bool loaded = false;
    int r = json_get_bool(params, "loaded", &loaded, err);

    n = MIN(n, engine_models(e, list, n));
    for (size_t i = 0; i < n; i++)
        if (!loaded || is_loaded(list[i].state))
            json_array_append_new(models, json_of_model(&list[i]));
    free(list);
    if (r < 0) {
        json_decref(models);
        return r;
    }
    *ret_result = json_pack("{s:o}", "models", models);
    return 1;
}

static int started(struct call *c, int64_t job)
{
    if (job < 0)
        return (int)job;
    c->job = job;
    return 0;
}

static void log_change(const struct call *c, const char *what, const char *target)
{
    log_info(what, "'%s' uid=%d pid=%d", target, (int)c->peer->who.uid, (int)c->peer->who.pid);
}

/* The model as it stands now, with what the load itself took. */
static json_t *shape_loaded(const struct call *c, const json_t *result)
{
    const char *name = json_string_value(json_object_get(result, "model"));
    struct model_status m;
    struct err err;
    json_t *o;

    /* One that has left again meanwhile is told as the engine saw it. */
    if (!name || engine_model(c->peer->control->engine, name, &m, &err) < 0)
        return json_deep_copy(result);
    o = json_of_model(&m);
    json_object_set(o, "was_loaded", json_object_get(result, "was_loaded"));
    json_object_set(o, "load_ms", json_object_get(result, "load_ms"));
    return o;
}

static json_t *shape_unloaded(const struct call *c, const json_t *result)
{
    (void)c;
    return json_pack("{s:O, s:O}", "name", json_object_get(result, "model"), "freed",
                     json_object_get(result, "bytes"));
}

int on_model_load(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct load_spec spec = {.ttl_ms = -1, .pin = -1};
    struct job_sink sink = call_sink(c);
    int64_t ctx = 0;
    bool pin = false;
    int r;

    (void)ret_result;
    r = json_get_string(params, "target", &spec.target, err);
    if (r >= 0)
        r = json_get_string(params, "name", &spec.name, err);
    if (r >= 0)
        r = json_get_int(params, "ctx", 1, INT32_MAX, &ctx, err);
    if (r >= 0)
        r = json_get_string(params, "kv", &spec.kv, err);
    if (r >= 0)
        r = param_time(params, "ttl", &spec.ttl_ms, err);
    if (r >= 0)
        r = json_get_bool(params, "pin", &pin, err);
    if (r < 0)
        return r;
    if (r == 1)
        spec.pin = pin;
    spec.n_ctx = (size_t)ctx;
    log_change(c, "load asked for", spec.target);
    c->shape = shape_loaded;
    return started(c, engine_load(c->peer->control->engine, &spec, &sink, err));
}

int on_model_unload(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct job_sink sink = call_sink(c);
    const char *name = NULL;
    bool force = false;
    int r = json_get_string(params, "name", &name, err);

    (void)ret_result;
    if (r >= 0)
        r = json_get_bool(params, "force", &force, err);
    if (r < 0)
        return r;
    log_change(c, "unload asked for", name);
    c->shape = shape_unloaded;
    return started(c, engine_unload(c->peer->control->engine, name, force, &sink, err));
}

int on_model_show(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct job_sink sink = call_sink(c);
    const char *target = NULL;
    int r = json_get_string(params, "target", &target, err);

    (void)ret_result;
    return r < 0 ? r : started(c, engine_show(c->peer->control->engine, target, &sink, err));
}

int on_model_verify(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct job_sink sink = call_sink(c);
    const char *target = NULL;
    int r = json_get_string(params, "target", &target, err);

    (void)ret_result;
    return r < 0 ? r : started(c, engine_verify(c->peer->control->engine, target, &sink, err));
}

int on_model_plan(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct job_sink sink = call_sink(c);
    const char *target = NULL, *kv = NULL;
    int64_t ctx = 0;
    uint64_t ram = 0;
    int r = json_get_string(params, "target", &target, err);

    (void)ret_result;
    if (r >= 0)
        r = json_get_int(params, "ctx", 1, INT32_MAX, &ctx, err);
    if (r >= 0)
        r = json_get_string(params, "kv", &kv, err);
    if (r >= 0)
        r = param_size(c->peer->control, params, "ram", &ram, err);
    if (r < 0)
        return r;
    return started(c,
                   engine_plan(c->peer->control->engine, target, (size_t)ctx, kv, ram, &sink, err));
}
