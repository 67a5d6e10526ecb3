/*
 * Limits and deadlines of connections, and evhttp's own error pages turned into
 * OpenAI's error object; see http_priv.h.
 */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "daemon/http/http_priv.h"

#define SWEEP_MS      250L
#define WARN_EVERY_MS 60000

/* What a connection reads is charged in steps of this; the first one is free. */
#define CHARGE_STEP ((size_t)16 << 10)

/* What it has still to be sent is charged in steps of this; the first one is free. */
#define CHARGE_OUT_STEP ((size_t)64 << 10)

/* Of an answer's head at most. */
#define HEAD_BYTES ((size_t)4 << 10)

static ino_t inode_of(int fd)
{
    struct stat st;

    return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

/* -- error pages ---------------------------------------------------------------------------------- */

static enum err_kind kind_of(int status)
{
    switch (status) {
    case 408: return ERR_TIMEOUT;
    case 413: return ERR_TOO_LARGE;
    case 417: return ERR_TOO_LARGE;
    case 501: return ERR_METHOD;
    default: return ERR_INVALID;
    }
}

static const char *sentence_of(int status)
{
    switch (status) {
    case 408: return "the request did not arrive in time";
    case 413:
    case 417: return "the body is larger than http.body_max allows";
    case 501: return "that method is not known here";
    default:
        return "this is no well-formed HTTP request, or its header is larger than http.header_max "
               "allows";
    }
}

static void write_answer(const struct err *error, struct str *out)
{
    int status = err_http_status(error->kind);
    struct str body = {0};

    openai_error(error, &body);
    str_addf(out,
             "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: "
             "%zu\r\n%sConnection: close\r\n\r\n",
             status, status == 413 ? "Content Too Large" : "Refused", body.len,
             error->kind == ERR_NOMEM ? "Retry-After: 30\r\n" : "");
    str_add(out, body.p, body.len);
    str_clear(&body);
}

static void write_error(int status, struct str *out)
{
    struct err err;

    err_set(&err, kind_of(status), "%s", sentence_of(status));
    write_answer(&err, out);
}

/*
 * evhttp answers what it refuses by itself (a broken request line) with a small
 * HTML page that no hook can change.  Where no request of ours is being answered
 * such a page is evhttp's; its last line tells that it is whole.
 */
static void replace_error_page(struct evbuffer *b)
{
    static const char end[] = "</HTML>\n";
    char page[1024];
    size_t len = evbuffer_get_length(b);
    struct str out = {0};
    long status;

    if (len < sizeof end || len >= sizeof page)
        return;
    evbuffer_copyout(b, page, len);
    page[len] = '\0';
    /* "HTTP/1.1 413 …" */
    status = strncmp(page, "HTTP/1.", 7) == 0 ? strtol(page + 8, NULL, 10) : 0;
    if (status < 400 || status > 599 || strcmp(page + len - strlen(end), end) != 0)
        return;
    evbuffer_drain(b, len);
    write_error((int)status, &out);
    evbuffer_add(b, out.p, out.len);
    str_clear(&out);
}

/* An answer that a slow reader leaves here is memory as any other. */
static void charge_output(struct connection *c, size_t len)
{
    int r = engine_charge_steps(c->http->engine, &c->charged_out, len, CHARGE_OUT_STEP,
                                "an answer that is not read", NULL);

    if (r < 0 && !c->overfull && c->http->sweep) {
        c->overfull = true;
        event_active(c->http->sweep, EV_TIMEOUT, 0);
    }
}

static void on_output(struct evbuffer *b, const struct evbuffer_cb_info *info, void *arg)
{
    struct connection *c = arg;

    if (info->n_added && c->state != CONNECTION_ANSWERING)
        replace_error_page(b);
    if (info->n_deleted)
        c->promised = 0; /* evhttp begins to send when all is in */
    charge_output(c, MAX(c->promised, evbuffer_get_length(b)));
}

/* -- states ------------------------------------------------------------------------------------------- */

static void set_state(struct connection *c, int state)
{
    c->state = state;
    c->since_ms = clock_ms();
}

static void discharge(struct connection *c)
{
    engine_discharge(c->http->engine, c->charged);
    c->charged = c->n_read = 0;
}

/* The sweep, woken at once, says why. */
static void refuse(struct connection *c, const struct err *error)
{
    c->refused = xmemdup(error, sizeof *error);
    event_active(c->http->sweep, EV_TIMEOUT, 0);
}

/*
 * evhttp keeps a body in memory until it is complete: each step of it is asked
 * of the ledger.
 */
static void charge(struct connection *c)
{
    struct err err;

    if (c->n_read <= c->charged + CHARGE_STEP || c->refused)
        return;
    if (engine_charge(c->http->engine, c->n_read - c->charged, "a request body", &err) == 0) {
        c->charged = c->n_read;
        return;
    }
    refuse(c, &err);
}

static void check_length(struct connection *c, struct evbuffer *b, size_t n)
{
    struct err err;

    announce_feed(&c->announce, b, n);
    if (c->announce.body <= c->http->opt.body_max_bytes || c->refused)
        return;
    err_set(&err, kind_of(413), "%s", sentence_of(413));
    refuse(c, &err);
}

static void on_input(struct evbuffer *b, const struct evbuffer_cb_info *info, void *arg)
{
    struct connection *c = arg;

    if (info->n_added && c->state == CONNECTION_IDLE) {
        set_state(c, CONNECTION_READING);
        announce_begin(&c->announce);
    }
    if (c->state != CONNECTION_READING || info->n_added == 0)
        return;
    c->n_read += info->n_added;
    check_length(c, b, info->n_added);
    charge(c);
    /* A client that is still sending would not see an answer on a closed connection. */
    if (c->refused)
        evbuffer_drain(b, evbuffer_get_length(b));
}

struct made {
    struct http *http;
    struct bufferevent *bev;
    struct connection *connection;
};

/* evhttp sets the descriptor after bevcb has returned; this runs before anything can arrive on it. */
static void on_made(evutil_socket_t fd, short what, void *arg)
{
    struct made *m = arg;
    struct connection *c = m->connection;

    (void)fd;
    (void)what;
    c->fd = bufferevent_getfd(m->bev);
    c->inode = inode_of(c->fd);
    free(m);
}

static void pause_listeners(struct http *h, bool pause)
{
    for (size_t i = 0; i < h->n_bound; i++) {
        struct evconnlistener *l = evhttp_bound_socket_get_listener(h->bound[i]);

        if (pause)
            evconnlistener_disable(l);
        else
            evconnlistener_enable(l);
    }
}

struct bufferevent *connections_make(struct event_base *base, void *http)
{
    struct http *h = http;
    struct bufferevent *bev = bufferevent_socket_new(base, -1, BEV_OPT_CLOSE_ON_FREE);
    struct connection *c;
    struct made *m;

    if (!bev)
        return NULL;
    c = XNEW(struct connection);
    c->http = h;
    c->fd = -1;
    set_state(c, CONNECTION_IDLE);
    c->next = h->connections;
    h->connections = c;
    h->stats.connections++;
    if (++h->stats.open_connections >= h->opt.connections_max)
        pause_listeners(h, true);
    evbuffer_add_cb(bufferevent_get_input(bev), on_input, c);
    evbuffer_add_cb(bufferevent_get_output(bev), on_output, c);
    m = XNEW(struct made);
    *m = (struct made){h, bev, c};
    event_base_once(base, -1, EV_TIMEOUT, on_made, m, &(struct timeval){0});
    return bev;
}

static struct connection *find(const struct http *h, struct evhttp_request *req)
{
    struct evhttp_connection *con = evhttp_request_get_connection(req);
    int fd = con ? bufferevent_getfd(evhttp_connection_get_bufferevent(con)) : -1;

    for (struct connection *c = h->connections; c && fd >= 0; c = c->next)
        if (c->fd == fd && c->inode == inode_of(fd))
            return c;
    return NULL;
}

void connections_mark(struct http *h, struct evhttp_request *req, bool answering)
{
    struct connection *c = find(h, req);

    if (!c)
        return;
    set_state(c, answering ? CONNECTION_ANSWERING : CONNECTION_IDLE);
    if (!answering)
        discharge(c);
}

void connections_discharge(struct http *h, struct evhttp_request *req)
{
    struct connection *c = find(h, req);

    if (c)
        discharge(c);
}

int connections_promise(struct http *h, struct evhttp_request *req, size_t bytes, size_t *from,
                        struct err *err)
{
    struct connection *c = find(h, req);
    size_t want = (bytes + HEAD_BYTES) / CHARGE_OUT_STEP * CHARGE_OUT_STEP;
    size_t more, taken;
    int r = 0;

    if (!c || want <= c->charged_out)
        return 0;
    more = want - c->charged_out;
    taken = MIN(more, *from);
    if (more > taken)
        r = engine_charge(h->engine, more - taken, "an answer", err);
    if (r < 0)
        return r;
    *from -= taken;
    c->charged_out = c->promised = want;
    return 0;
}

/* No descriptor or memory is left for a client: trying again at once would only spin, so the sweep tries. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
    static int64_t told_ms = -WARN_EVERY_MS; /* LOOP's alone */
    int error = errno;
    char text[128];

    (void)arg;
    evconnlistener_disable(l);
    if (clock_ms() - told_ms < WARN_EVERY_MS)
        return;
    told_ms = clock_ms();
    log_warning("cannot take a connection, so new clients wait:", "%s",
                strerror_r(error, text, sizeof text));
}

void connections_listen(struct evhttp_bound_socket *b)
{
    evconnlistener_set_error_cb(evhttp_bound_socket_get_listener(b), on_accept_error);
}

/* -- the sweep ---------------------------------------------------------------------------------------- */

static void tell_refused(struct connection *c)
{
    struct str out = {0};

    write_answer(c->refused, &out);
    c->told = true;
    if (send(c->fd, out.p, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) >= 0)
        shutdown(c->fd, SHUT_WR);
    str_clear(&out);
}

/* The other side is late: say so if it will fit, and let evhttp find the connection closed. */
static void end_late(struct connection *c)
{
    struct str out = {0};

    if (c->state == CONNECTION_READING && !c->told) {
        write_error(408, &out);
        if (send(c->fd, out.p, out.len, MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
            set_state(c, CONNECTION_IDLE);
        str_clear(&out);
    }
    shutdown(c->fd, SHUT_RDWR);
}

/* evhttp has freed what it had read. */
static void forget(struct connection *c)
{
    if (c->charged > TRIM_BYTES)
        malloc_trim(0);
    discharge(c);
    engine_discharge(c->http->engine, c->charged_out);
    free(c->refused);
    free(c);
}

static void on_sweep(evutil_socket_t fd, short what, void *arg)
{
    struct http *h = arg;
    int64_t now = clock_ms();
    size_t open = 0;

    (void)fd;
    (void)what;
    exchange_look_for_resets(h);
    for (struct connection **at = &h->connections; *at;) {
        struct connection *c = *at;
        int64_t limit =
            c->state == CONNECTION_READING ? h->opt.read_timeout_ms : h->opt.idle_timeout_ms;

        if (c->fd >= 0 && inode_of(c->fd) != c->inode) {
            *at = c->next;
            forget(c);
            continue;
        }
        if (c->fd >= 0 && c->refused && !c->told)
            tell_refused(c);
        if (c->fd >= 0 && c->overfull)
            shutdown(c->fd, SHUT_RDWR);
        if (c->fd >= 0 && c->state != CONNECTION_ANSWERING && limit && now - c->since_ms > limit)
            end_late(c);
        open++;
        at = &c->next;
    }
    h->stats.open_connections = open;
    if (open < h->opt.connections_max)
        pause_listeners(h, false);
}

void connections_watch(struct http *h)
{
    h->sweep = event_new(h->base, -1, EV_PERSIST, on_sweep, h);
    event_add(h->sweep, &(struct timeval){.tv_usec = SWEEP_MS * 1000});
}

void connections_forget(struct http *h)
{
    struct connection *next;

    if (h->sweep)
        event_free(h->sweep);
    h->sweep = NULL;
    /* The callbacks on their buffers must not outlive them: evhttp goes first. */
    if (h->server)
        evhttp_free(h->server);
    h->server = NULL;
    for (struct connection *c = h->connections; c; c = next) {
        next = c->next;
        forget(c);
    }
    h->connections = NULL;
}
