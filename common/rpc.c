/* The JSON-RPC 2.0 envelope; see rpc.h. */
#include <stdio.h>
#include <string.h>

#include "common/json.h"
#include "common/rpc.h"

int rpc_take_line(struct str *buf, struct str *ret_line, struct err *err)
{
    size_t blank = buf->p ? strspn(buf->p, "\r\n") : 0;
    const char *end;
    size_t len;

    /* In one step: a peer that sends newlines alone must not cost a move for each. */
    str_remove_front(buf, blank);
    end = buf->len ? memchr(buf->p, '\n', buf->len) : NULL;
    len = end ? (size_t)(end - buf->p) : buf->len;
    if (len > RPC_LINE_MAX)
        return err_set(err, ERR_TOO_LARGE, "the line is longer than %zu bytes; send less at once",
                       RPC_LINE_MAX);
    if (!end)
        return 0;
    str_truncate(ret_line, 0);
    str_add(ret_line, buf->p, len > 0 && end[-1] == '\r' ? len - 1 : len);
    str_remove_front(buf, len + 1);
    return 1;
}

static bool is_id(const json_t *id)
{
    return json_is_integer(id) || json_is_string(id);
}

static int parse_error(json_t *error, struct err *ret_error, struct err *err)
{
    json_t *code = json_object_get(error, "code");
    json_t *message = json_object_get(error, "message");
    json_t *data = json_object_get(error, "data");
    const char *name = json_string_value(json_object_get(data, "kind"));
    const char *param = json_string_value(json_object_get(data, "param"));
    enum err_kind kind = ERR_INTERNAL;
    struct str more = {0};

    if (!json_is_integer(code) || !json_is_string(message))
        return err_set(err, ERR_ENVELOPE, "'error' must have an integer code and a message");
    for (int k = ERR_NONE + 1; k < ERR_N_KINDS; k++)
        if (name ? strcmp(err_name(k), name) == 0 : err_rpc_code(k) == json_integer_value(code))
            kind = (enum err_kind)k;
    if (param)
        err_set_param(ret_error, kind, param, "%s", json_string_value(message));
    else
        err_set(ret_error, kind, "%s", json_string_value(message));
    if (json_is_object(data)) {
        json_object_del(data, "kind");
        json_object_del(data, "param");
        if (json_object_size(data))
            json_dump_to(data, &more);
        if (more.len < sizeof ret_error->data)
            memcpy(ret_error->data, str_text(&more), more.len + 1);
        str_clear(&more);
    }
    return 0;
}

static int parse_call(struct rpc_message *m, struct err *err)
{
    json_t *method = json_object_get(m->root, "method");
    json_t *params = json_object_get(m->root, "params");

    if (!json_is_string(method))
        return err_set(err, ERR_ENVELOPE, "'method' must be a string");
    if (json_object_get(m->root, "id") && !m->id)
        return err_set(err, ERR_ENVELOPE, "'id' must be an integer or a string");
    if (params && !json_is_object(params))
        return err_set(err, ERR_ENVELOPE, "'params' must be an object: name the parameters");
    m->type = m->id ? RPC_REQUEST : RPC_NOTIFICATION;
    m->method = json_string_value(method);
    m->params = params;
    return 0;
}

static int parse_answer(struct rpc_message *m, struct err *err)
{
    json_t *error = json_object_get(m->root, "error");

    m->result = json_object_get(m->root, "result");
    if (!error == !m->result)
        return err_set(err, ERR_ENVELOPE,
                       "the message must have one of 'method', 'result' and 'error'");
    /* Only an error may lack an id: that of a request that could not be read. */
    if (!m->id && (m->result || !json_is_null(json_object_get(m->root, "id"))))
        return err_set(err, ERR_ENVELOPE, "'id' must be an integer or a string");
    m->type = error ? RPC_ERROR : RPC_RESULT;
    return error ? parse_error(error, &m->error, err) : 0;
}

static int parse_envelope(struct rpc_message *m, struct err *err)
{
    const char *version = json_string_value(json_object_get(m->root, "jsonrpc"));

    if (json_is_array(m->root))
        return err_set(err, ERR_ENVELOPE, "batches are not supported; send one request a line");
    if (!json_is_object(m->root))
        return err_set(err, ERR_ENVELOPE, "the message must be a JSON object");
    if (!version || strcmp(version, "2.0") != 0)
        return err_set(err, ERR_ENVELOPE, "'jsonrpc' must be \"2.0\"");
    return json_object_get(m->root, "method") ? parse_call(m, err) : parse_answer(m, err);
}

int rpc_parse(const char *line, size_t n, struct rpc_message *ret_msg, json_t **ret_id,
              struct err *err)
{
    struct rpc_message m = {.id = NULL};
    json_t *id;
    int r;

    *ret_id = NULL;
    r = json_parse(line, n, &m.root, err);
    if (r < 0)
        return r;
    id = json_object_get(m.root, "id");
    m.id = is_id(id) ? id : NULL;
    r = parse_envelope(&m, err);
    if (r < 0) {
        *ret_id = json_incref(m.id);
        rpc_message_clear(&m);
        return r;
    }
    *ret_msg = m;
    return 0;
}

void rpc_message_clear(struct rpc_message *m)
{
    json_decref(m->root);
    *m = (struct rpc_message){.id = NULL};
}

static void begin(struct str *out)
{
    str_adds(out, "{\"jsonrpc\":\"2.0\"");
}

static void add_member(struct str *out, const char *key, const json_t *value)
{
    str_addf(out, ",\"%s\":", key);
    if (value)
        json_dump_to(value, out);
    else
        str_adds(out, "null");
}

static void add_text(struct str *out, const char *key, const char *text)
{
    json_t *value = json_text(text, strlen(text));

    add_member(out, key, value);
    json_decref(value);
}

static void write_call(struct str *out, const json_t *id, const char *method, json_t *take_params)
{
    begin(out);
    if (id)
        add_member(out, "id", id);
    add_text(out, "method", method);
    if (take_params)
        add_member(out, "params", take_params);
    str_adds(out, "}\n");
    json_decref(take_params);
}

void rpc_write_request(struct str *out, const json_t *id, const char *method, json_t *take_params)
{
    write_call(out, id, method, take_params);
}

void rpc_write_notification(struct str *out, const char *method, json_t *take_params)
{
    write_call(out, NULL, method, take_params);
}

void rpc_write_result(struct str *out, const json_t *id, json_t *take_result)
{
    size_t start = out->len;
    struct err too_large;

    begin(out);
    add_member(out, "id", id);
    add_member(out, "result", take_result);
    str_adds(out, "}\n");
    json_decref(take_result);
    if (out->len - start <= RPC_LINE_MAX + 1)
        return;
    str_truncate(out, start);
    err_set(&too_large, ERR_TOO_LARGE,
            "the answer is longer than the %zu bytes of a line; ask for less", RPC_LINE_MAX);
    rpc_write_error(out, id, &too_large);
}

void rpc_write_error(struct str *out, const json_t *id, const struct err *error)
{
    json_t *data = json_loads(error->data, JSON_REJECT_DUPLICATES, NULL);

    if (!json_is_object(data)) {
        json_decref(data);
        data = json_object();
    }
    json_object_set_new(data, "kind", json_string(err_name((int)error->kind)));
    if (error->param[0])
        json_object_set_new(data, "param", json_text(error->param, strlen(error->param)));
    begin(out);
    add_member(out, "id", id);
    str_addf(out, ",\"error\":{\"code\":%d", err_rpc_code((int)error->kind));
    add_text(out, "message", error->text);
    add_member(out, "data", data);
    str_adds(out, "}}\n");
    json_decref(data);
}
