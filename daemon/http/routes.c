/* The table of paths; see http.h. */
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/http/http_priv.h"

/* rest: what follows the path of a row that ends in '/', decoded. */
typedef void route_fn(struct http *h, struct evhttp_request *req, const char *rest);

struct route {
    const char *path;
    enum evhttp_cmd_type method;
    bool open; /* answered without a key */
    route_fn *handle;
};

static void get_health(struct http *h, struct evhttp_request *req, const char *rest)
{
    struct str body = {0};

    (void)rest;
    str_addf(&body, "{\"status\": \"%s\", \"version\": \"%s\"}", h->stopping ? "stopping" : "ok",
             RNBD_VERSION);
    exchange_send(h, req, h->stopping ? 503 : 200, "application/json", &body);
    str_clear(&body);
}

static void get_metrics(struct http *h, struct evhttp_request *req, const char *rest)
{
    struct str body = {0};

    (void)rest;
    metrics_write(h, &body);
    exchange_send(h, req, 200, "text/plain; version=0.0.4; charset=utf-8", &body);
    str_clear(&body);
}

static void get_models(struct http *h, struct evhttp_request *req, const char *rest)
{
    struct str body = {0};

    (void)rest;
    openai_models(h->engine, &body);
    exchange_send(h, req, 200, "application/json", &body);
    str_clear(&body);
}

static void get_model(struct http *h, struct evhttp_request *req, const char *rest)
{
    struct str body = {0};
    struct err err;

    if (openai_model(h->engine, rest, &body, &err) < 0)
        exchange_send_error(h, req, &err);
    else
        exchange_send(h, req, 200, "application/json", &body);
    str_clear(&body);
}

static void post_chat(struct http *h, struct evhttp_request *req, const char *rest)
{
    (void)rest;
    body_take(h, req, openai_chat);
}

static void post_completion(struct http *h, struct evhttp_request *req, const char *rest)
{
    (void)rest;
    body_take(h, req, openai_completion);
}

static void post_embedding(struct http *h, struct evhttp_request *req, const char *rest)
{
    (void)rest;
    body_take(h, req, openai_embedding);
}

static const struct route routes[] = {
    {"/health", EVHTTP_REQ_GET, true, get_health},
    {"/metrics", EVHTTP_REQ_GET, false, get_metrics},
    {"/v1/models", EVHTTP_REQ_GET, false, get_models},
    {"/v1/models/", EVHTTP_REQ_GET, false, get_model},
    {"/v1/chat/completions", EVHTTP_REQ_POST, false, post_chat},
    {"/v1/completions", EVHTTP_REQ_POST, false, post_completion},
    {"/v1/embeddings", EVHTTP_REQ_POST, false, post_embedding},
};

/* -- dispatch ------------------------------------------------------------------------------------ */

static const char *method_name(enum evhttp_cmd_type m)
{
    return m == EVHTTP_REQ_GET ? "GET, HEAD" : "POST";
}

/* The part of path after a row's, NULL when the row is another's. */
static const char *match(const struct route *r, const char *path)
{
    size_t n = strlen(r->path);

    if (r->path[n - 1] == '/')
        return strncmp(path, r->path, n) == 0 && path[n] ? path + n : NULL;
    return strcmp(path, r->path) == 0 ? path + n : NULL;
}

static void answer_preflight(struct http *h, struct evhttp_request *req, const struct route *r)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(req);

    evhttp_add_header(out, "Access-Control-Allow-Methods", method_name(r->method));
    evhttp_add_header(out, "Access-Control-Allow-Headers",
                      "Authorization, Content-Type, x-api-key");
    evhttp_add_header(out, "Access-Control-Max-Age", "600");
    evhttp_add_header(out, "Allow", method_name(r->method));
    exchange_send(h, req, 204, NULL, NULL);
}

static void dispatch(struct http *h, struct evhttp_request *req, const struct route *r,
                     const char *rest)
{
    enum evhttp_cmd_type method = evhttp_request_get_command(req);
    struct err err;
    char *decoded;

    if (auth_check(h, req, !r->open && method != EVHTTP_REQ_OPTIONS, &err) < 0) {
        exchange_send_error(h, req, &err);
        return;
    }
    if (method == EVHTTP_REQ_OPTIONS) {
        answer_preflight(h, req, r);
        return;
    }
    if (method != r->method && !(method == EVHTTP_REQ_HEAD && r->method == EVHTTP_REQ_GET)) {
        evhttp_add_header(evhttp_request_get_output_headers(req), "Allow", method_name(r->method));
        err_set(&err, ERR_METHOD, "%s takes %s", r->path, method_name(r->method));
        exchange_send_error(h, req, &err);
        return;
    }
    decoded = evhttp_uridecode(rest, 0, NULL);
    r->handle(h, req, decoded ? decoded : rest);
    free(decoded);
}

void routes_on_request(struct evhttp_request *req, void *http)
{
    struct http *h = http;
    const struct evhttp_uri *uri = evhttp_request_get_evhttp_uri(req);
    const char *path = uri ? evhttp_uri_get_path(uri) : NULL;
    struct str known = {0};
    struct err err;

    h->stats.requests++;
    connections_mark(h, req, true);
    for (size_t i = 0; path && i < ARRAY_LEN(routes); i++) {
        const char *rest = match(&routes[i], path);

        if (rest) {
            dispatch(h, req, &routes[i], rest);
            return;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        str_addf(&known, " %s", routes[i].path);
    err_set(&err, ERR_NOT_FOUND, "there is nothing at '%.128s'; the paths are%s", path ? path : "",
            str_text(&known));
    str_clear(&known);
    exchange_send_error(h, req, &err);
}
