/*
 * From the bytes of a body to a request; see http_priv.h.
 *
 * A large one is counted, and then parsed, on the engine's IO thread, so that
 * the loop answers others meanwhile; what that takes is asked of the ledger in
 * between, in LOOP.
 */
#include <event2/buffer.h>
#include <event2/keyvalq_struct.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/http/http_priv.h"

/* Past this the loop would be held up for more than a millisecond or so. */
#define ASIDE_BYTES ((size_t)128 << 10)

struct body {
    struct body *next;
    struct http *http; /* NULL: it is gone */
    struct engine *engine;
    struct evhttp_request *req; /* NULL: the client is gone */
    struct evhttp_connection *con;
    struct evbuffer *in; /* in one piece once it is counted */
    parse_fn *parse;
    size_t tree;    /* bytes of the parsed text at most */
    size_t charged; /* for the time of parsing */
    struct request *request;
    struct reply *reply;
    struct err err;
    int r;
};

static int check_type(struct evhttp_request *req, struct err *err)
{
    const struct evkeyvalq *headers = evhttp_request_get_input_headers(req);
    const char *type = evhttp_find_header(headers, "Content-Type");
    const char *encoding = evhttp_find_header(headers, "Content-Encoding");

    if (encoding && strcasecmp(encoding, "identity") != 0)
        return err_set(err, ERR_MEDIA,
                       "Content-Encoding '%.32s' is not supported; send the body as it is",
                       encoding);
    if (!type || strncasecmp(type, "application/json", 16) != 0 ||
        (type[16] && !strchr("; \t", type[16])))
        return err_set(err, ERR_MEDIA,
                       "the body must be JSON with 'Content-Type: application/json', not '%.64s'",
                       type ? type : "nothing");
    return 0;
}

/* -- the two steps ------------------------------------------------------------------------ */

/* Asked of the ledger before it is parsed. */
static void count(void *body)
{
    struct body *b = body;
    const unsigned char *p = evbuffer_pullup(b->in, -1);

    b->tree = json_tree_bytes((const char *)p, evbuffer_get_length(b->in));
}

static void parse(void *body)
{
    struct body *b = body;
    size_t n = evbuffer_get_length(b->in);
    json_t *root = NULL;

    b->r = json_parse(n ? (const char *)evbuffer_pullup(b->in, -1) : "", n, &root, &b->err);
    evbuffer_drain(b->in, n);
    if (b->r == 0)
        b->r = b->parse(root, &b->request, &b->reply, &b->err);
    json_decref(root);
    if (b->charged > TRIM_BYTES)
        malloc_trim(0);
}

/* -- in LOOP ------------------------------------------------------------------------------- */

static int charge(struct body *b, size_t bytes)
{
    b->r = engine_charge(b->engine, bytes, "a request body", &b->err);
    if (b->r >= 0)
        b->charged += bytes;
    return b->r;
}

/* To be counted it is put into one piece, beside what has come in. */
static int charge_text(struct body *b)
{
    return charge(b, evbuffer_get_length(b->in));
}

/* Its tree, and the copies of parts of it that the request keeps. */
static int charge_tree(struct body *b)
{
    return charge(b, 2 * b->tree);
}

static void unlist(struct body *b)
{
    struct body **at = b->http ? &b->http->bodies : NULL;

    while (at && *at && *at != b)
        at = &(*at)->next;
    if (at && *at)
        *at = b->next;
    if (b->con)
        evhttp_connection_set_closecb(b->con, NULL, NULL);
}

static void start(struct body *b)
{
    char *peer = NULL;
    ev_uint16_t port = 0;

    b->request->bytes = b->tree + sizeof *b->request;
    evhttp_connection_get_peer(evhttp_request_get_connection(b->req), &peer, &port);
    snprintf(b->request->client, sizeof b->request->client, "http %s:%u",
             peer && *peer ? peer : "unix", (unsigned)port);
    exchange_start(b->http, b->req, b->request, b->reply);
    b->request = NULL;
    b->reply = NULL;
}

/* Answers, or hands on, and frees. */
static void finish(void *body)
{
    struct body *b = body;
    bool refused = b->r < 0 && evbuffer_get_length(b->in) > TRIM_BYTES;

    unlist(b);
    engine_discharge(b->engine, b->charged);
    if (b->http && b->req) {
        connections_discharge(b->http, b->req);
        if (b->r < 0)
            exchange_send_error(b->http, b->req, &b->err);
        else
            start(b);
    }
    request_destroy(b->request);
    reply_destroy(b->reply);
    evbuffer_free(b->in);
    if (refused)
        malloc_trim(0);
    free(b);
}

static void counted(void *body)
{
    struct body *b = body;

    if (!b->http || !b->req || charge_tree(b) < 0)
        finish(b);
    else
        engine_aside(b->engine, parse, finish, b);
}

/* evhttp is dropping the connection and the request with it. */
static void on_dropped(struct evhttp_connection *con, void *arg)
{
    struct body *b = arg;

    (void)con;
    b->con = NULL;
    b->req = NULL;
}

void body_take(struct http *h, struct evhttp_request *req, parse_fn *parse_it)
{
    struct evbuffer *in = evhttp_request_get_input_buffer(req);
    struct body *b = XNEW(struct body);

    b->http = h;
    b->engine = h->engine;
    b->req = req;
    b->parse = parse_it;
    b->in = evbuffer_new();
    evbuffer_add_buffer(b->in, in);
    b->r = check_type(req, &b->err);
    if (b->r == 0)
        charge_text(b);
    if (b->r == 0 && evbuffer_get_length(b->in) > ASIDE_BYTES) {
        b->con = evhttp_request_get_connection(req);
        b->next = h->bodies;
        h->bodies = b;
        evhttp_connection_set_closecb(b->con, on_dropped, b);
        engine_aside(b->engine, count, counted, b);
        return;
    }
    if (b->r == 0) {
        count(b);
        if (charge_tree(b) == 0)
            parse(b);
    }
    finish(b);
}

void body_forget_all(struct http *h)
{
    struct body *next;

    for (struct body *b = h->bodies; b; b = next) {
        next = b->next;
        if (b->con)
            evhttp_connection_set_closecb(b->con, NULL, NULL);
        b->con = NULL;
        b->req = NULL;
        b->http = NULL;
    }
    h->bodies = NULL;
}
