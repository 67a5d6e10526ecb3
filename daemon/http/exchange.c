/* A request on its way to its answer, whole or as a stream of server-sent events; see http_priv.h. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/keyvalq_struct.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/alloc.h"
#include "daemon/http/http_priv.h"

struct exchange {
    struct exchange *next;
    struct http *http;
    struct evhttp_request *req;
    struct evhttp_connection *con;
    struct reply *reply;
    uint64_t id;
    bool begun;              /* the head of a stream has been sent */
    bool early;              /* the client has sent more already, which waits in the kernel */
    struct event *closed;    /* the client has hung up */
    struct event *keepalive; /* time for a comment */
};

static const char *reason_of(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        {200, "OK"},
        {204, "No Content"},
        {400, "Bad Request"},
        {401, "Unauthorized"},
        {403, "Forbidden"},
        {404, "Not Found"},
        {405, "Method Not Allowed"},
        {408, "Request Timeout"},
        {409, "Conflict"},
        {413, "Too Large"},
        {415, "Unsupported Media Type"},
        {422, "Unprocessable Content"},
        {429, "Too Many Requests"},
        {500, "Internal Server Error"},
        {503, "Service Unavailable"},
    };

    for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Error";
}

static void on_complete(struct evhttp_request *req, void *arg)
{
    connections_mark(arg, req, false);
}

void exchange_send(struct http *h, struct evhttp_request *req, int status, const char *type,
                   const struct str *body)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(req);
    struct evbuffer *b = evbuffer_new();

    if (type)
        evhttp_add_header(out, "Content-Type", type);
    if (body && body->len && evhttp_request_get_command(req) != EVHTTP_REQ_HEAD)
        evbuffer_add(b, body->p, body->len);
    if (body)
        h->stats.bytes_sent += body->len;
    if (h->stopping)
        evhttp_add_header(out, "Connection", "close");
    evhttp_request_set_on_complete_cb(req, on_complete, h);
    evhttp_send_reply(req, status, reason_of(status), b);
    evbuffer_free(b);
}

void exchange_send_error(struct http *h, struct evhttp_request *req, const struct err *error)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(req);
    struct str body = {0};

    h->stats.refused++;
    if (error->kind == ERR_BUSY || error->kind == ERR_LOADING || error->kind == ERR_NOMEM)
        evhttp_add_header(out, "Retry-After", error->kind == ERR_BUSY ? "5" : "30");
    if (error->kind == ERR_AUTH)
        evhttp_add_header(out, "WWW-Authenticate", "Bearer");
    openai_error(error, &body);
    exchange_send(h, req, err_http_status(error->kind), "application/json", &body);
    str_clear(&body);
}

/* -- the end ---------------------------------------------------------------------------------------- */

/* Takes x out of the list and frees it; req and con are evhttp's again. */
static void forget(struct exchange *x)
{
    struct exchange **at = &x->http->exchanges;

    while (*at && *at != x)
        at = &(*at)->next;
    if (*at)
        *at = x->next;
    if (x->con)
        evhttp_connection_set_closecb(x->con, NULL, NULL);
    if (x->closed)
        event_free(x->closed);
    if (x->keepalive)
        event_free(x->keepalive);
    if (x->begun)
        x->http->stats.streams--;
    reply_destroy(x->reply);
    free(x);
}

/* evhttp is dropping the connection and the request with it. */
static void on_dropped(struct evhttp_connection *con, void *arg)
{
    struct exchange *x = arg;

    (void)con;
    engine_abandon(x->http->engine, x->id);
    x->con = NULL;
    forget(x);
}

/* Ends the work and the connection under it. */
static void cut(struct exchange *x)
{
    struct evhttp_connection *con = x->con;

    engine_abandon(x->http->engine, x->id);
    forget(x);
    evhttp_connection_free(con);
}

/*
 * evhttp does not look at a connection that it waits to answer on, and must not
 * be made to (it exits the process on early bytes of a next request): the
 * kernel's word that the peer has hung up comes by an event of our own.
 */
static void on_closed(evutil_socket_t fd, short what, void *arg)
{
    struct exchange *x = arg;
    char byte;
    ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (what & EV_CLOSED || n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        cut(x);
        return;
    }
    /* Early bytes stay where they are; while they are there, only the close is waited for. */
    if (n > 0 && !x->early) {
        x->early = true;
        event_assign(x->closed, x->http->base, fd, EV_CLOSED, on_closed, x);
    }
    event_add(x->closed, NULL);
}

/*
 * A connection that is reset is no EV_CLOSED for libevent, but an EV_READ,
 * which is not waited for where early bytes would raise it all the time.
 */
void exchange_look_for_resets(struct http *h)
{
    struct exchange *x, *next;

    for (x = h->exchanges; x; x = next) {
        struct pollfd p = {.fd = event_get_fd(x->closed)};

        next = x->next;
        if (x->early && poll(&p, 1, 0) > 0 && p.revents & (POLLERR | POLLHUP))
            cut(x);
    }
}

/* -- streams ------------------------------------------------------------------------------------------ */

static void begin_stream(struct exchange *x)
{
    struct evkeyvalq *out = evhttp_request_get_output_headers(x->req);

    if (x->begun)
        return;
    x->begun = true;
    x->http->stats.streams++;
    evhttp_add_header(out, "Content-Type", "text/event-stream");
    evhttp_add_header(out, "Cache-Control", "no-cache");
    evhttp_add_header(out, "X-Accel-Buffering", "no");
    evhttp_send_reply_start(x->req, 200, "OK");
}

/* False when the client reads too slowly and has been cut off: x is gone then. */
static bool send_chunk(struct exchange *x, const struct str *text)
{
    struct evbuffer *b;
    struct bufferevent *bev = evhttp_connection_get_bufferevent(x->con);

    if (evbuffer_get_length(bufferevent_get_output(bev)) > x->http->opt.send_max_bytes) {
        cut(x);
        return false;
    }
    b = evbuffer_new();
    evbuffer_add(b, text->p, text->len);
    x->http->stats.bytes_sent += text->len;
    evhttp_send_reply_chunk(x->req, b);
    evbuffer_free(b);
    return true;
}

static void on_keepalive(evutil_socket_t fd, short what, void *arg)
{
    static char comment[] = ": waiting\n\n";
    struct exchange *x = arg;
    struct str text = {comment, sizeof comment - 1, 0};

    (void)fd;
    (void)what;
    begin_stream(x);
    send_chunk(x, &text);
}

static void restart_keepalive(struct exchange *x)
{
    int64_t ms = x->http->opt.keepalive_ms;

    if (x->keepalive)
        event_add(x->keepalive,
                  &(struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000});
}

static void finish(struct exchange *x)
{
    struct evhttp_request *req = x->req;
    struct http *h = x->http;

    forget(x);
    evhttp_request_set_on_complete_cb(req, on_complete, h);
    evhttp_send_reply_end(req);
}

static void stream(struct exchange *x, const struct event *ev)
{
    struct str text = {0};
    bool last = ev->kind == EVENT_DONE || ev->kind == EVENT_FAILED;

    /* An error before the first byte still gets its own status. */
    if (ev->kind == EVENT_FAILED && !x->begun) {
        struct evhttp_request *req = x->req;
        struct http *h = x->http;

        forget(x);
        exchange_send_error(h, req, ev->error);
        return;
    }
    reply_event(x->reply, ev, &text);
    if (text.len) {
        begin_stream(x);
        restart_keepalive(x);
        if (!send_chunk(x, &text))
            last = false;
    }
    str_clear(&text);
    if (last)
        finish(x);
}

static void whole(struct exchange *x, const struct event *ev)
{
    struct evhttp_request *req = x->req;
    struct http *h = x->http;
    struct str text = {0};
    struct err err;

    reply_event(x->reply, ev, &text);
    if (ev->kind == EVENT_FAILED) {
        forget(x);
        exchange_send_error(h, req, ev->error);
    } else if (ev->kind == EVENT_DONE) {
        forget(x);
        if (connections_promise(h, req, text.len, ev->charged, &err) < 0)
            exchange_send_error(h, req, &err);
        else
            exchange_send(h, req, 200, "application/json", &text);
    }
    str_clear(&text);
}

static void on_event(void *arg, const struct event *ev)
{
    struct exchange *x = arg;

    if (reply_streams(x->reply))
        stream(x, ev);
    else
        whole(x, ev);
}

void exchange_start(struct http *h, struct evhttp_request *req, struct request *take_request,
                    struct reply *take_reply)
{
    struct exchange *x = XNEW(struct exchange);
    struct err err;
    int fd;

    x->http = h;
    x->req = req;
    x->reply = take_reply;
    take_request->answer_whole = !reply_streams(take_reply);
    if (engine_submit(h->engine, take_request, on_event, x, &x->id, &err) < 0) {
        reply_destroy(take_reply);
        free(x);
        exchange_send_error(h, req, &err);
        return;
    }
    x->con = evhttp_request_get_connection(req);
    x->next = h->exchanges;
    h->exchanges = x;
    evhttp_connection_set_closecb(x->con, on_dropped, x);
    fd = bufferevent_getfd(evhttp_connection_get_bufferevent(x->con));
    x->closed = event_new(h->base, fd, EV_READ | EV_CLOSED, on_closed, x);
    event_add(x->closed, NULL);
    if (reply_streams(take_reply) && h->opt.keepalive_ms > 0) {
        x->keepalive = event_new(h->base, -1, EV_PERSIST, on_keepalive, x);
        restart_keepalive(x);
    }
}

void exchange_end_all(struct http *h)
{
    while (h->exchanges)
        cut(h->exchanges);
}
