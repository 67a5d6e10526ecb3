/*
 * http - the OpenAI face: libevent's evhttp on a TCP address and, if asked, a
 * Unix socket.  Knows routes, limits, keys and origins; what the bodies mean is
 * the openai room's, what is done with them the engine's.
 *
 * Nothing here computes or waits: /health, /metrics and /v1/models answer at
 * once while a model loads or generates.
 *
 * Adding a route is one row of the table in routes.c.
 *
 * Thread: LOOP.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct event_base;
struct engine;
struct http;

struct http_options {
    char *listen;      /* "127.0.0.1:8000", "[::1]:8000"; "" none */
    char *unix_socket; /* path; "" none */
    char *key_file;    /* one key a line; "" none (then only loopback may be bound) */
    char *origins;     /* space-separated browser origins that may call, "*" any; "" none */
    char *hosts;       /* space-separated Host names beyond loopback's that are answered; "*" any */
    size_t header_max_bytes;
    size_t body_max_bytes;
    int64_t read_timeout_ms;
    int64_t idle_timeout_ms;
    size_t connections_max;
    size_t
        send_max_bytes; /* a reader that lets more than this pile up is cut off, and its work cancelled */
    int64_t keepalive_ms; /* an SSE comment this often while queued or prefilling */
    int inherited_fd;     /* a listening socket from systemd; -1 none */
};

/* What the faces report besides the engine's own numbers. */
struct http_stats {
    uint64_t connections, requests, refused, bytes_sent;
    size_t open_connections, streams;
};

/* Refuses (one sentence) a bind beyond loopback without a key, an address in use, an unreadable key file. */
int http_create(const struct http_options *opt, struct event_base *base, struct engine *e,
                struct http **ret, struct err *err);
void http_stop_accepting(struct http *h);
void http_destroy(struct http *h);

/* The TCP port that is listened on (tests ask for port 0), 0 when none. */
unsigned http_port(const struct http *h);
void http_stats(const struct http *h, struct http_stats *ret);
/* Reads the key file again; on failure the old keys stay. */
int http_reload_keys(struct http *h, struct err *err);
