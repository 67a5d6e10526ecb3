/* From a line to a handler and back: the table of methods, params checked by it, calls in flight. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "common/rpc.h"
#include "common/units.h"
#include "daemon/control/control_priv.h"

/* A parsed line up to this is free, so that a budget without room can still be raised. */
#define FREE_TREE ((size_t)64 << 10)

/* Past this a parsed line has left holes in the heap that are worth giving back. */
#define TRIM_BYTES ((size_t)1 << 20)

struct method {
    const char *name;
    const char *params;
    method_fn *handle;
};

static const struct method methods[] = {
#define METHOD(name, cname, params, result, help) {name, params, on_##cname},
#include "common/methods.def"
#undef METHOD
};

/* -- params -------------------------------------------------------------------------------------- */

/* One "name?:type" of a row. */
struct param {
    char name[32];
    char type[16];
    bool optional;
};

static const char *next_param(const char *spec, struct param *ret)
{
    size_t n = strcspn(spec, " ");
    size_t name = strcspn(spec, "?:");
    const char *type = memchr(spec, ':', n);

    if (n == 0 || !type)
        return NULL;
    snprintf(ret->name, sizeof ret->name, "%.*s", (int)name, spec);
    ret->optional = spec[name] == '?';
    snprintf(ret->type, sizeof ret->type, "%.*s", (int)(spec + n - type - 1), type + 1);
    return spec + n + (spec[n] == ' ');
}

static bool type_fits(const char *type, const json_t *v)
{
    static const struct {
        const char *name;
        int a, b; /* JSON types */
    } types[] = {
        {"string", JSON_STRING, -1},         {"int", JSON_INTEGER, -1},
        {"bool", JSON_TRUE, JSON_FALSE},     {"array", JSON_ARRAY, -1},
        {"number", JSON_INTEGER, JSON_REAL}, {"size", JSON_STRING, JSON_INTEGER},
        {"time", JSON_STRING, JSON_INTEGER},
    };

    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (strcmp(types[i].name, type) == 0)
            return (int)json_typeof(v) == types[i].a || (int)json_typeof(v) == types[i].b;
    return false;
}

static int check_params(const struct method *m, const json_t *params, struct err *err)
{
    const char *known[24] = {NULL};
    struct param list[23], *p = list;
    const char *at = m->params;
    size_t n = 0;

    for (; n < ARRAY_LEN(list) && (at = next_param(at, p)); p++) {
        const json_t *v = json_object_get(params, p->name);

        known[n++] = p->name;
        if (!v || json_is_null(v)) {
            if (!p->optional)
                return err_set_param(err, ERR_INVALID, p->name, "%s needs '%s' (%s)", m->name,
                                     p->name, p->type);
        } else if (!type_fits(p->type, v)) {
            return err_set_param(err, ERR_INVALID, p->name, "'%s' of %s must be of type %s",
                                 p->name, m->name, p->type);
        }
    }
    return params ? json_only_keys(params, known, err) : 0;
}

int param_size(const struct control *c, const json_t *params, const char *key, uint64_t *out,
               struct err *err)
{
    const json_t *v = json_object_get(params, key);
    struct ledger_report ram;

    if (!v || json_is_null(v))
        return 0;
    if (json_is_integer(v)) {
        if (json_integer_value(v) <= 0)
            return err_set_param(err, ERR_INVALID, key, "'%s' must be a positive number of bytes",
                                 key);
        *out = (uint64_t)json_integer_value(v);
        return 1;
    }
    engine_memory(c->engine, POOL_RAM, &ram);
    return units_parse_share(json_string_value(v), ram.capacity, out, err) < 0 ? -ERR_INVALID : 1;
}

int param_time(const json_t *params, const char *key, int64_t *out, struct err *err)
{
    const json_t *v = json_object_get(params, key);

    if (!v || json_is_null(v))
        return 0;
    if (json_is_integer(v)) {
        if (json_integer_value(v) < 0)
            return err_set_param(err, ERR_INVALID, key,
                                 "'%s' must be a time such as \"15m\", or milliseconds", key);
        *out = json_integer_value(v);
        return 1;
    }
    return units_parse_time_ms(json_string_value(v), out, err) < 0 ? -ERR_INVALID : 1;
}

/* -- calls ------------------------------------------------------------------------------------------ */

static void call_free(struct call *c)
{
    struct call **at = &c->peer->calls;

    while (*at != c)
        at = &(*at)->next;
    *at = c->next;
    json_decref(c->id);
    str_clear(&c->text);
    str_clear(&c->reasoning);
    free(c);
}

void call_notify(struct call *c, const char *method, json_t *take_params)
{
    struct str line = {0};

    json_object_set(take_params, "call", c->id);
    rpc_write_notification(&line, method, take_params);
    peer_send(c->peer, &line);
    str_clear(&line);
}

void call_progress(struct call *c, const char *step, size_t done, size_t total)
{
    call_notify(c, "progress",
                json_pack("{s:s, s:I, s:I}", "step", step, "done", (json_int_t)done, "total",
                          (json_int_t)total));
}

void call_done(struct call *c, json_t *take_result)
{
    struct str line = {0};

    rpc_write_result(&line, c->id, take_result);
    peer_send(c->peer, &line);
    str_clear(&line);
    call_free(c);
}

void call_failed(struct call *c, const struct err *error)
{
    struct str line = {0};

    rpc_write_error(&line, c->id, error);
    peer_send(c->peer, &line);
    str_clear(&line);
    call_free(c);
}

void call_abandon(struct call *c)
{
    struct control *ctl = c->peer->control;

    if (c->job)
        engine_job_abandon(ctl->engine, c->job);
    if (c->request)
        engine_abandon(ctl->engine, c->request);
    if (c->reload)
        ctl->hooks.forget_reload(ctl->hooks.arg, c);
    call_free(c);
}

static void on_job_progress(void *arg, const char *step, size_t done, size_t total)
{
    call_progress(arg, step, done, total);
}

static void on_job_done(void *arg, json_t *result, const struct err *error)
{
    struct call *c = arg;

    if (error)
        call_failed(c, error);
    else if (c->shape)
        call_done(c, c->shape(c, result));
    else
        call_done(c, result ? json_incref(result) : json_object());
}

struct job_sink call_sink(struct call *c)
{
    return (struct job_sink){on_job_progress, on_job_done, c};
}

/* -- lines --------------------------------------------------------------------------------------------- */

static const struct method *find_method(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    return NULL;
}

static void run(struct peer *p, const struct method *m, const struct rpc_message *msg, size_t tree)
{
    struct call *c = XNEW(struct call);
    json_t *result = NULL;
    struct err err;
    int r;

    c->peer = p;
    c->id = json_incref(msg->id);
    c->method = m->name;
    c->tree = tree;
    c->next = p->calls;
    p->calls = c;
    r = check_params(m, msg->params, &err);
    if (r >= 0)
        r = m->handle(c, msg->params, &result, &err);
    if (r < 0)
        call_failed(c, &err);
    else if (r == 1)
        call_done(c, result);
}

/* With room for the tree; the line is known to be a call only when it has been parsed. */
static void parse(struct peer *p, const char *line, size_t n, size_t tree)
{
    struct rpc_message msg;
    const struct method *m;
    json_t *id = NULL;
    struct str out = {0};
    struct err err;

    if (rpc_parse(line, n, &msg, &id, &err) < 0) {
        rpc_write_error(&out, id, &err);
        peer_send(p, &out);
        str_clear(&out);
        json_decref(id);
        return;
    }
    /* A client has nothing to notify and nothing to answer. */
    if (msg.type == RPC_REQUEST) {
        m = find_method(msg.method);
        if (m) {
            run(p, m, &msg, tree);
        } else {
            err_set(&err, ERR_METHOD, "there is no method '%s'; `rnbctl help --json` lists them",
                    msg.method);
            rpc_write_error(&out, msg.id, &err);
            peer_send(p, &out);
            str_clear(&out);
        }
    }
    rpc_message_clear(&msg);
}

int dispatch_line(struct peer *p, const char *line, size_t n, struct err *err)
{
    struct engine *e = p->control->engine;
    size_t tree = json_tree_bytes(line, n);
    size_t charged = tree > FREE_TREE ? tree : 0;
    int r = engine_charge(e, charged, "a control call", err);

    if (r < 0)
        return r;
    parse(p, line, n, tree);
    engine_discharge(e, charged);
    if (charged > TRIM_BYTES)
        malloc_trim(0);
    return 0;
}
