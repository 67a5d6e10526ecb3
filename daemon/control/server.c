/* The listening socket and its peers; see control.h. */
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/listener.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/log.h"
#include "common/rpc.h"
#include "daemon/control/control_priv.h"

#define REST_MS 100L

/* A peer's lines up to this are free; beyond, they are asked of the ledger in steps of this. */
#define CHARGE_STEP ((size_t)64 << 10)

/* What is held for a peer now: a line that is not whole, and answers that it has not read. */
static int charge(struct peer *p, struct err *err)
{
    size_t held = p->in.cap + evbuffer_get_length(bufferevent_get_output(p->bev));

    return engine_charge_steps(p->control->engine, &p->charged, held, CHARGE_STEP,
                               "a control connection", err);
}

static void peer_free(struct peer *p)
{
    struct peer **at = &p->control->peers;

    while (*at != p)
        at = &(*at)->next;
    *at = p->next;
    while (p->calls)
        call_abandon(p->calls);
    if (p->control->listener && p->control->n_peers-- == p->control->opt.connections_max)
        evconnlistener_enable(p->control->listener);
    engine_discharge(p->control->engine, p->charged);
    bufferevent_free(p->bev);
    str_clear(&p->in);
    free(p);
}

void peer_send(struct peer *p, const struct str *line)
{
    if (p->closing)
        return;
    bufferevent_write(p->bev, line->p, line->len);
    /* One that does not read is bounded by its own buffer; it finds the connection closed. */
    if (evbuffer_get_length(bufferevent_get_output(p->bev)) > p->control->opt.send_max_bytes ||
        charge(p, NULL) < 0) {
        p->closing = true;
        bufferevent_disable(p->bev, EV_READ);
        bufferevent_trigger_event(p->bev, BEV_EVENT_EOF, BEV_TRIG_DEFER_CALLBACKS);
    }
}

static void close_after_error(struct peer *p, const struct err *error)
{
    struct str line = {0};

    rpc_write_error(&line, NULL, error);
    peer_send(p, &line);
    str_clear(&line);
    p->closing = true;
    bufferevent_disable(p->bev, EV_READ);
}

static void on_read(struct bufferevent *bev, void *arg)
{
    struct peer *p = arg;
    struct evbuffer *in = bufferevent_get_input(bev);
    struct str line = {0};
    struct err err;
    int r = 0;

    while (evbuffer_get_length(in) && !p->closing) {
        char chunk[16384];
        int n = evbuffer_remove(in, chunk, sizeof chunk);

        if (n <= 0)
            break;
        str_add(&p->in, chunk, (size_t)n);
        r = charge(p, &err);
        while (r >= 0 && !p->closing && (r = rpc_take_line(&p->in, &line, &err)) == 1) {
            r = dispatch_line(p, str_text(&line), line.len, &err);
            str_clear(&line);
            if (r < 0)
                break;
        }
        if (r < 0) {
            str_clear(&p->in); /* it is not read on: there is room for the sentence */
            close_after_error(p, &err);
        }
    }
    str_clear(&line);
    if (!p->in.len && p->in.cap > CHARGE_STEP) {
        str_clear(&p->in);
        charge(p, NULL);
    }
}

static void on_written(struct bufferevent *bev, void *arg)
{
    struct peer *p = arg;

    (void)bev;
    if (p->closing)
        peer_free(p);
    else
        charge(p, NULL);
}

static void on_event(struct bufferevent *bev, short what, void *arg)
{
    (void)bev;
    if (what & (BEV_EVENT_EOF | BEV_EVENT_ERROR))
        peer_free(arg);
}

static void on_accept(struct evconnlistener *l, evutil_socket_t fd, struct sockaddr *addr, int len,
                      void *arg)
{
    struct control *c = arg;
    struct peer *p;
    struct err err;

    (void)addr;
    (void)len;
    p = XNEW(struct peer);
    p->control = c;
    p->bev = bufferevent_socket_new(c->base, fd, BEV_OPT_CLOSE_ON_FREE);
    if (!p->bev || sock_peer_of(fd, &p->who, &err) < 0) {
        if (p->bev)
            bufferevent_free(p->bev);
        else
            close(fd);
        free(p);
        return;
    }
    p->next = c->peers;
    c->peers = p;
    if (++c->n_peers == c->opt.connections_max)
        evconnlistener_disable(l);
    bufferevent_setcb(p->bev, on_read, on_written, on_event, p);
    bufferevent_enable(p->bev, EV_READ | EV_WRITE);
}

/* No descriptor or memory is left for a client: trying again at once would only spin. */
static void on_accept_error(struct evconnlistener *l, void *arg)
{
    struct control *c = arg;

    evconnlistener_disable(l);
    event_add(c->rest, &(struct timeval){.tv_usec = REST_MS * 1000});
}

static void on_rested(evutil_socket_t fd, short what, void *arg)
{
    struct control *c = arg;

    (void)fd;
    (void)what;
    if (c->n_peers < c->opt.connections_max)
        evconnlistener_enable(c->listener);
}

int control_create(const struct control_options *opt, const struct control_hooks *hooks,
                   struct event_base *base, struct engine *e, struct control **ret, struct err *err)
{
    struct control *c = XNEW(struct control);
    int fd = opt->inherited_fd;
    int r = 0;

    c->opt = *opt;
    c->opt.socket = xstrdup(opt->socket);
    c->hooks = *hooks;
    c->base = base;
    c->engine = e;
    c->rest = evtimer_new(base, on_rested, c);
    if (fd < 0) {
        char *dir = xstrdup(opt->socket);
        char *slash = strrchr(dir, '/');

        if (slash && slash != dir) {
            *slash = '\0';
            r = file_make_dirs(dir, 0755, err);
        }
        free(dir);
        if (r == 0)
            r = sock_listen_unix(opt->socket, opt->mode, &fd, err);
        c->owns_path = r == 0;
    } else {
        evutil_make_socket_nonblocking(fd);
    }
    if (r == 0) {
        c->listener = evconnlistener_new(base, on_accept, c,
                                         LEV_OPT_CLOSE_ON_FREE | LEV_OPT_CLOSE_ON_EXEC, 0, fd);
        if (c->listener)
            evconnlistener_set_error_cb(c->listener, on_accept_error);
        else
            r = err_set(err, ERR_IO, "cannot accept connections on the control socket '%s'",
                        opt->socket);
    }
    if (r < 0) {
        control_destroy(c);
        return r;
    }
    *ret = c;
    return 0;
}

void control_stop_accepting(struct control *c)
{
    if (!c->listener)
        return;
    event_del(c->rest);
    evconnlistener_free(c->listener);
    c->listener = NULL;
    if (c->owns_path)
        unlink(c->opt.socket);
    c->owns_path = false;
}

void control_destroy(struct control *c)
{
    if (!c)
        return;
    control_stop_accepting(c);
    while (c->peers)
        peer_free(c->peers);
    event_free(c->rest);
    free(c->opt.socket);
    free(c);
}
