/*
 * What the files of this room share: peers (connections), calls in flight, and
 * the handlers, one for each row of methods.def.
 */
#pragma once

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>

#include "common/sock.h"
#include "common/str.h"
#include "daemon/control/control.h"
#include "daemon/engine/engine.h"

struct control {
    struct control_options opt;
    struct control_hooks hooks;
    struct event_base *base;
    struct engine *engine;
    struct evconnlistener *listener;
    struct event *rest; /* of the listener, when there was no descriptor left for a client */
    bool owns_path;
    struct peer *peers;
    size_t n_peers;
};

struct peer {
    struct peer *next;
    struct control *control;
    struct bufferevent *bev;
    struct str in;
    struct sock_peer who;
    struct call *calls;
    size_t charged; /* of what it has sent and not been sent yet, in the ledger */
    bool closing;   /* no more input; gone when the output has been written */
};

/* A call that has not been answered.  Exactly one of job, request and reload is set while it is in flight. */
struct call {
    struct call *next;
    struct peer *peer;
    json_t *id;
    const char *method;
    size_t tree; /* most bytes of its parsed line */
    int64_t job;
    uint64_t request;
    bool reload;
    /* Makes the answer of the engine's (new reference), where the two differ; NULL: they do not. */
    json_t *(*shape)(const struct call *c, const json_t *result);
    struct str text; /* generate: the answer so far */
    struct str reasoning;
};

/* -- server.c -- */
void peer_send(struct peer *p, const struct str *line);

/* -- dispatch.c -- */
/*
 * One line from a peer: parses, checks params, calls the handler, answers or leaves the call in flight.
 * ERR_NOMEM: there is no room to parse it, so its id is not known and nothing has been answered.
 */
int dispatch_line(struct peer *p, const char *line, size_t n, struct err *err);
void call_progress(struct call *c, const char *step, size_t done, size_t total);
void call_notify(struct call *c, const char *method, json_t *take_params);
/* Each answers the call and frees it. */
void call_done(struct call *c, json_t *take_result);
void call_failed(struct call *c, const struct err *error);
/* The peer left: nothing is answered, the work is given up. */
void call_abandon(struct call *c);
/* A sink that answers c from a job of the engine. */
struct job_sink call_sink(struct call *c);

/* -- on_*.c: one handler a method ------------------------------------------------------------- */

/* 1: *ret_result is the answer; 0: in flight (c->job or c->request is set); negative: refused. */
typedef int method_fn(struct call *c, const json_t *params, json_t **ret_result, struct err *err);

#define METHOD(name, cname, params, result, help) method_fn on_##cname;
#include "common/methods.def"
#undef METHOD

json_t *json_of_model(const struct model_status *m);
json_t *json_of_budget(const struct engine *e);
/* Reads a size ("4GiB", "50%" of the machine, or bytes); absent leaves *out. */
int param_size(const struct control *c, const json_t *params, const char *key, uint64_t *out,
               struct err *err);
int param_time(const json_t *params, const char *key, int64_t *out, struct err *err);
