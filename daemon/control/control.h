/*
 * control - JSON-RPC 2.0 over a Unix socket, one JSON object a line: the
 * methods of common/methods.def, several in flight on one connection,
 * notifications for progress and streamed text.
 *
 * A call never waits behind inference; a connection that closes abandons its
 * calls.  Changes are logged with the peer's credentials.
 *
 * Adding a method is a row of methods.def and a handler named after it.
 *
 * Thread: LOOP.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct event_base;
struct engine;
struct control;

struct control_options {
    char *socket;  /* path */
    unsigned mode; /* of the socket file, 0660 */
    size_t connections_max;
    size_t send_max_bytes; /* a peer that does not read is cut off past this */
    int inherited_fd;      /* a listening socket from systemd; -1 none */
};

/* The end of a reload: restart is a JSON array of keys that need a restart, borrowed; or error. */
typedef void reloaded_fn(void *arg, json_t *restart, const struct err *error);

/* What main lends: things that are neither the engine's nor control's. */
struct control_hooks {
    void *arg;
    void (*shutdown)(void *arg);
    /* Looks again how much memory the machine and the cgroup let us have, and tells the ledger. */
    void (*probe)(void *arg);
    /*
     * Reads the configuration again.  done is called once: before this returns, or,
     * when models have to give back memory for it, later.
     */
    void (*reload)(void *arg, reloaded_fn *done, void *done_arg);
    /* Who asked has left: done is not called any more for that done_arg. */
    void (*forget_reload)(void *arg, void *done_arg);
    /* Version, uptime, listeners, settings in force: what server.status shows besides the engine. */
    json_t *(*status)(void *arg);
};

int control_create(const struct control_options *opt, const struct control_hooks *hooks,
                   struct event_base *base, struct engine *e, struct control **ret,
                   struct err *err);
void control_stop_accepting(struct control *c);
void control_destroy(struct control *c);
