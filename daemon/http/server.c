/* Listeners and limits; see http.h. */
#include <arpa/inet.h>
#include <errno.h>
#include <event2/listener.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/sock.h"
#include "daemon/http/http_priv.h"

static int add_listener(struct http *h, int fd, const char *what, struct err *err)
{
    struct evhttp_bound_socket *b = evhttp_accept_socket_with_handle(h->server, fd);

    if (!b) {
        close(fd);
        return err_set(err, ERR_IO, "cannot accept connections on %s", what);
    }
    connections_listen(b);
    h->bound[h->n_bound++] = b;
    return 0;
}

/* "127.0.0.1:8000", "[::1]:8000", "localhost:8000" → host and port (new strings). */
static int split_address(const char *listen, char **ret_host, char **ret_port, struct err *err)
{
    const char *colon = strrchr(listen, ':');
    const char *host = listen;
    size_t len = colon ? (size_t)(colon - listen) : 0;

    if (!colon || !colon[1] || len == 0)
        return err_set(err, ERR_INVALID, "http.listen '%s' is not of the form ADDRESS:PORT",
                       listen);
    if (host[0] == '[' && host[len - 1] == ']') {
        host++;
        len -= 2;
    }
    *ret_host = xstrndup(host, len);
    *ret_port = xstrdup(colon + 1);
    return 0;
}

static bool address_is_loopback(const struct sockaddr *a)
{
    if (a->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)a)->sin_addr.s_addr) >> 24 == 127;
    return a->sa_family == AF_INET6 &&
           IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)(const void *)a)->sin6_addr);
}

/* A key must guard whatever others can reach. */
static int check_exposure(const struct http *h, const struct sockaddr *a, const char *name,
                          struct err *err)
{
    if (h->n_keys || a->sa_family == AF_UNIX || address_is_loopback(a))
        return 0;
    return err_set(
        err, ERR_INVALID,
        "'%s' can be reached from other machines, so a key is needed: set http.key_file (or the "
        "credential api-key), or listen on 127.0.0.1",
        name);
}

static int listen_on(const struct addrinfo *a, const char *name, int *ret_fd, struct err *err)
{
    int on = 1;
    int fd = socket(a->ai_family, a->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, a->ai_protocol);

    if (fd < 0)
        return err_set_errno(err, ERR_IO, errno, "cannot make a socket for '%s'", name);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (a->ai_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
    if (bind(fd, a->ai_addr, a->ai_addrlen) < 0 || listen(fd, 128) < 0) {
        int r = err_set_errno(err, ERR_IO, errno, "cannot listen on '%s' (http.listen)", name);

        close(fd);
        return r;
    }
    *ret_fd = fd;
    return 0;
}

static int open_tcp(struct http *h, struct err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    char *host = NULL, *port = NULL;
    int fd, r;

    r = split_address(h->opt.listen, &host, &port, err);
    if (r < 0)
        return r;
    r = getaddrinfo(host, port, &hints, &list);
    if (r != 0) {
        r = err_set(err, ERR_INVALID, "http.listen '%s': %s", h->opt.listen, gai_strerror(r));
        goto out;
    }
    r = check_exposure(h, list->ai_addr, h->opt.listen, err);
    if (r == 0)
        r = listen_on(list, h->opt.listen, &fd, err);
    if (r == 0)
        r = add_listener(h, fd, h->opt.listen, err);
out:
    if (list)
        freeaddrinfo(list);
    free(host);
    free(port);
    return r;
}

static int open_unix(struct http *h, struct err *err)
{
    int fd;
    int r = sock_listen_unix(h->opt.unix_socket, 0660, &fd, err);

    if (r < 0)
        return r;
    h->unix_path = xstrdup(h->opt.unix_socket);
    return add_listener(h, fd, h->opt.unix_socket, err);
}

static int open_inherited(struct http *h, struct err *err)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;
    int fd = h->opt.inherited_fd;
    int r;

    if (getsockname(fd, (struct sockaddr *)&a, &len) < 0)
        return err_set_errno(err, ERR_IO, errno,
                             "the socket from the service manager has no address");
    r = check_exposure(h, (struct sockaddr *)&a, "the socket from the service manager", err);
    if (r < 0)
        return r;
    evutil_make_socket_nonblocking(fd);
    return add_listener(h, fd, "the socket from the service manager", err);
}

static int open_listeners(struct http *h, struct err *err)
{
    int r = 0;

    /* What systemd passed stands in for the address, so that a unit alone decides. */
    if (h->opt.inherited_fd >= 0)
        r = open_inherited(h, err);
    else if (h->opt.listen && *h->opt.listen)
        r = open_tcp(h, err);
    if (r == 0 && h->opt.unix_socket && *h->opt.unix_socket)
        r = open_unix(h, err);
    return r;
}

static char *dup_or_empty(const char *s)
{
    return xstrdup(s ? s : "");
}

static void copy_options(struct http *h, const struct http_options *opt)
{
    h->opt = *opt;
    h->opt.listen = dup_or_empty(opt->listen);
    h->opt.unix_socket = dup_or_empty(opt->unix_socket);
    h->opt.key_file = dup_or_empty(opt->key_file);
    h->opt.origins = dup_or_empty(opt->origins);
    h->opt.hosts = dup_or_empty(opt->hosts);
}

static void set_limits(struct http *h)
{
    /* Deadlines are connections.c's: evhttp's own one timer would also end long answers. */
    struct timeval never = {.tv_sec = 365L * 24 * 3600};

    evhttp_set_max_headers_size(h->server, (ev_ssize_t)h->opt.header_max_bytes);
    evhttp_set_max_body_size(h->server, (ev_ssize_t)h->opt.body_max_bytes);
    evhttp_set_timeout_tv(h->server, &never);
    evhttp_set_flags(h->server, EVHTTP_SERVER_LINGERING_CLOSE);
    evhttp_set_allowed_methods(h->server, EVHTTP_REQ_GET | EVHTTP_REQ_POST | EVHTTP_REQ_HEAD |
                                              EVHTTP_REQ_PUT | EVHTTP_REQ_DELETE |
                                              EVHTTP_REQ_OPTIONS | EVHTTP_REQ_TRACE |
                                              EVHTTP_REQ_CONNECT | EVHTTP_REQ_PATCH);
    evhttp_set_default_content_type(h->server, "application/json");
    evhttp_set_bevcb(h->server, connections_make, h);
    evhttp_set_gencb(h->server, routes_on_request, h);
}

int http_create(const struct http_options *opt, struct event_base *base, struct engine *e,
                struct http **ret, struct err *err)
{
    struct http *h = XNEW(struct http);
    int r = 0;

    copy_options(h, opt);
    h->base = base;
    h->engine = e;
    h->server = evhttp_new(base);
    if (!h->server)
        r = err_set(err, ERR_INTERNAL, "libevent refused an HTTP server");
    if (r == 0 && *h->opt.key_file)
        r = auth_read_keys(h->opt.key_file, &h->keys, &h->n_keys, err);
    if (r == 0) {
        set_limits(h);
        r = open_listeners(h, err);
    }
    if (r < 0) {
        http_destroy(h);
        return r;
    }
    connections_watch(h);
    *ret = h;
    return 0;
}

void http_stop_accepting(struct http *h)
{
    h->stopping = true;
    for (size_t i = 0; i < h->n_bound; i++)
        evhttp_del_accept_socket(h->server, h->bound[i]);
    h->n_bound = 0;
    if (h->unix_path)
        unlink(h->unix_path);
}

void http_destroy(struct http *h)
{
    if (!h)
        return;
    exchange_end_all(h);
    body_forget_all(h);
    if (h->unix_path)
        unlink(h->unix_path);
    connections_forget(h);
    if (h->server)
        evhttp_free(h->server);
    auth_free_keys(h->keys, h->n_keys);
    free(h->unix_path);
    free(h->opt.listen);
    free(h->opt.unix_socket);
    free(h->opt.key_file);
    free(h->opt.origins);
    free(h->opt.hosts);
    free(h);
}

unsigned http_port(const struct http *h)
{
    struct sockaddr_storage a = {0};
    socklen_t len = sizeof a;

    for (size_t i = 0; i < h->n_bound; i++) {
        if (getsockname(evhttp_bound_socket_get_fd(h->bound[i]), (struct sockaddr *)&a, &len) < 0)
            continue;
        if (a.ss_family == AF_INET)
            return ntohs(((struct sockaddr_in *)(void *)&a)->sin_port);
        if (a.ss_family == AF_INET6)
            return ntohs(((struct sockaddr_in6 *)(void *)&a)->sin6_port);
    }
    return 0;
}

void http_stats(const struct http *h, struct http_stats *ret)
{
    *ret = h->stats;
}

int http_reload_keys(struct http *h, struct err *err)
{
    struct str *keys = NULL;
    size_t n = 0;
    int r;

    if (!*h->opt.key_file)
        return 0;
    r = auth_read_keys(h->opt.key_file, &keys, &n, err);
    if (r < 0)
        return r;
    auth_free_keys(h->keys, h->n_keys);
    h->keys = keys;
    h->n_keys = n;
    return 0;
}
