/* One connection to the daemon, one call at a time with its notifications; see cmd.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/alloc.h"
#include "common/rpc.h"
#include "common/sock.h"

static int connect_once(struct client *c, struct err *err)
{
    return c->fd >= 0 ? 0 : sock_connect_unix(c->socket, &c->fd, err);
}

static int send_all(int fd, const char *p, size_t n, struct err *err)
{
    while (n) {
        ssize_t wrote = send(fd, p, n, MSG_NOSIGNAL);

        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return err_set_errno(err, ERR_IO, errno, "cannot write to rnbd");
        p += wrote;
        n -= (size_t)wrote;
    }
    return 0;
}

static bool is_interrupted(const struct client *c)
{
    return c->interrupt && *c->interrupt;
}

/* How long a Ctrl-C that comes between two looks at it may go unseen. */
#define LOOK_MS 250

/* Waits for bytes, or for Ctrl-C. */
static int wait_readable(const struct client *c, struct err *err)
{
    struct pollfd p = {.fd = c->fd, .events = POLLIN};

    do {
        if (is_interrupted(c))
            return err_set(err, ERR_CANCELLED, "interrupted");
    } while (poll(&p, 1, c->interrupt ? LOOK_MS : -1) <= 0);
    return 0;
}

/* Blocks until a whole line is there. */
static int read_line(struct client *c, struct str *ret_line, struct err *err)
{
    char chunk[16384];
    int r;

    while ((r = rpc_take_line(c->in, ret_line, err)) == 0) {
        ssize_t n;

        r = wait_readable(c, err);
        if (r < 0)
            return r;
        n = read(c->fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? err_set_errno(err, ERR_IO, errno, "cannot read from rnbd")
                         : err_set(err, ERR_IO, "rnbd closed the connection");
        str_add(c->in, chunk, (size_t)n);
    }
    return r < 0 ? r : 0;
}

/* Reads messages until the answer to id is there. */
static int await(struct client *c, const json_t *id, notify_fn *notify, void *arg,
                 json_t **ret_result, struct err *err)
{
    struct str line = {0};
    struct rpc_message msg;
    json_t *bad_id = NULL;
    int r = 0;

    while (r == 0) {
        r = read_line(c, &line, err);
        if (r == 0)
            r = rpc_parse(str_text(&line), line.len, &msg, &bad_id, err);
        str_clear(&line);
        if (r < 0)
            break;
        if (msg.type == RPC_NOTIFICATION && notify) {
            notify(arg, msg.method, msg.params);
        } else if (msg.type == RPC_RESULT && msg.id && json_equal(msg.id, id)) {
            *ret_result = json_incref(msg.result);
            r = 1;
        } else if (msg.type == RPC_ERROR) {
            *err = msg.error;
            r = -(int)msg.error.kind;
        }
        rpc_message_clear(&msg);
    }
    json_decref(bad_id);
    return r < 0 ? r : 0;
}

int call_method(struct client *c, const char *method, json_t *take_params, notify_fn *notify,
                void *arg, json_t **ret_result, struct err *err)
{
    json_t *id = json_integer(++c->last_id);
    struct str line = {0};
    int r = connect_once(c, err);

    if (r == 0) {
        rpc_write_request(&line, id, method, take_params);
        if (line.len > RPC_LINE_MAX)
            r = err_set(err, ERR_TOO_LARGE,
                        "that is %zu bytes, and a control call holds at most %zu; shorten it, or "
                        "send it over HTTP",
                        line.len, RPC_LINE_MAX);
        else
            r = send_all(c->fd, line.p, line.len, err);
    } else {
        json_decref(take_params);
    }
    if (r == 0)
        r = await(c, id, notify, arg, ret_result, err);
    str_clear(&line);
    json_decref(id);
    return r;
}

void call_close(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    str_clear(c->in);
}

int print_error(const struct err *err)
{
    json_t *data = *err->data ? json_loads(err->data, 0, NULL) : NULL;
    const json_t *accounts = json_object_get(data, "accounts");
    const char *name;
    json_t *bytes;

    fflush(stdout);
    fprintf(stderr, "rnbctl: %s\n", err->text);
    json_object_foreach((json_t *)(uintptr_t)accounts, name, bytes)
    {
        if (json_number_value(bytes) > 0)
            fprintf(stderr, "  %-10s %s\n", name, size_text(json_number_value(bytes)));
    }
    json_decref(data);
    return EXIT_REFUSED;
}

void print_json(const json_t *value)
{
    json_dumpf(value, stdout, JSON_INDENT(2) | JSON_ENCODE_ANY);
    putchar('\n');
}

int call_or_print(struct client *c, const char *method, json_t *take_params, notify_fn *notify,
                  void *arg, json_t **ret_result)
{
    json_t *result = NULL;
    struct err err;

    *ret_result = NULL;
    if (call_method(c, method, take_params, notify, arg, &result, &err) < 0)
        return print_error(&err);
    if (c->json) {
        print_json(result);
        json_decref(result);
        return EXIT_OK;
    }
    *ret_result = result;
    return EXIT_OK;
}
