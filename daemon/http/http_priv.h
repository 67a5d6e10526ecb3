/*
 * What the files of this room share: the server, its connections, and one
 * exchange (a request on its way to its answer).
 */
#pragma once

#include <event2/event.h>
#include <event2/http.h>
#include <stdbool.h>
#include <sys/types.h>

#include "common/str.h"
#include "daemon/http/http.h"
#include "daemon/openai/openai.h"

/* What a request's head says of its body (announce.c). */
struct announce {
    enum { ANNOUNCE_OVER, ANNOUNCE_FIRST, ANNOUNCE_HEADERS } state;
    char line[64]; /* the begin of one */
    size_t len;
    uint64_t body; /* bytes; 0: it does not say */
};
void announce_begin(struct announce *a);
/* The last n bytes of b have been added. */
void announce_feed(struct announce *a, struct evbuffer *b, size_t n);

/*
 * One accepted connection.  evhttp tells nobody when it drops one, so a
 * connection is known by its descriptor and the inode behind it: once they no
 * longer agree it is gone (connections.c).
 */
struct connection {
    struct connection *next;
    int fd;
    ino_t inode;
    int64_t since_ms; /* of the state below */
    enum { CONNECTION_IDLE, CONNECTION_READING, CONNECTION_ANSWERING } state;
    struct http *http;
    size_t n_read; /* bytes of the request that is being read */
    struct announce announce;
    size_t charged;      /* of those, in the ledger */
    size_t charged_out;  /* of what is not sent yet, in the ledger */
    size_t promised;     /* of an answer that is being put in: it stays charged until it is */
    bool overfull;       /* that has no room: the sweep closes it */
    struct err *refused; /* they do not fit: what to say; the rest is read and dropped; NULL */
    bool told;           /* it has been said */
};

#define HTTP_MAX_LISTENERS 3

/* Past this a body that is gone has left holes in the heap that are worth giving back. */
#define TRIM_BYTES ((size_t)1 << 20)

struct http {
    struct http_options opt;
    struct event_base *base;
    struct engine *engine;
    struct evhttp *server;
    struct evhttp_bound_socket *bound[HTTP_MAX_LISTENERS];
    size_t n_bound;
    bool stopping;
    char *unix_path; /* to unlink */
    struct connection *connections;
    struct event *sweep;
    struct exchange *exchanges;
    struct body *bodies; /* that are parsed aside */
    struct str *keys;
    size_t n_keys;
    struct http_stats stats;
};

/* -- connections.c: limits and deadlines that evhttp does not have -- */
void connections_watch(struct http *h);
void connections_listen(struct evhttp_bound_socket *b); /* a new listener */
void connections_forget(struct http *h);
struct bufferevent *connections_make(struct event_base *base, void *http); /* evhttp's bevcb */
void connections_mark(struct http *h, struct evhttp_request *req, bool answering);
/* The request's bytes are held no longer. */
void connections_discharge(struct http *h, struct evhttp_request *req);
/*
 * Room for an answer that is sent next, asked for while another status can still be given: first
 * out of *from, which is charged already.  ERR_NOMEM.
 */
int connections_promise(struct http *h, struct evhttp_request *req, size_t bytes, size_t *from,
                        struct err *err);

/* -- auth.c -- */
int auth_read_keys(const char *path, struct str **ret_keys, size_t *ret_n, struct err *err);
void auth_free_keys(struct str *keys, size_t n);
/* Key, Host and Origin of a request; sets the CORS headers of its answer. */
int auth_check(struct http *h, struct evhttp_request *req, bool needs_key, struct err *err);
bool auth_is_loopback(const char *host, size_t len);

/* -- routes.c -- */
void routes_on_request(struct evhttp_request *req, void *http); /* evhttp's general callback */

/* -- body.c -- */
typedef int parse_fn(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                     struct err *err);
/* Parses the body of a request, aside when that takes a while, and takes it on to the engine. */
void body_take(struct http *h, struct evhttp_request *req, parse_fn *parse);
void body_forget_all(struct http *h); /* the server goes: no answer is given any more */

/* -- exchange.c -- */
/* Takes the request and its reply on to the engine; answers the error if that is refused. */
void exchange_start(struct http *h, struct evhttp_request *req, struct request *take_request,
                    struct reply *take_reply);
void exchange_end_all(struct http *h);
void exchange_look_for_resets(struct http *h); /* now and then */
void exchange_send(struct http *h, struct evhttp_request *req, int status, const char *type,
                   const struct str *body);
void exchange_send_error(struct http *h, struct evhttp_request *req, const struct err *error);

/* -- metrics.c -- */
void metrics_write(struct http *h, struct str *out);
