/*
 * rpc - the JSON-RPC 2.0 envelope and its framing, for both sides: one JSON
 * object a line, at most RPC_LINE_MAX bytes, UTF-8, "\n" at the end.
 *
 * Requests have an id (integer or string) and get one answer; notifications
 * have none.  The server sends notifications that belong to a call with
 * params.call = that call's id.  Batches are refused by name.
 *
 * Any thread; no I/O here.
 */
#pragma once

#include <jansson.h>
#include <stddef.h>

#include "common/err.h"
#include "common/str.h"

#define RPC_LINE_MAX ((size_t)1 << 20)

enum rpc_type { RPC_REQUEST, RPC_NOTIFICATION, RPC_RESULT, RPC_ERROR };

struct rpc_message {
    enum rpc_type type;
    json_t *id;         /* NULL for a notification */
    const char *method; /* borrowed from root; NULL for an answer */
    json_t *params;     /* borrowed; object or NULL */
    json_t *result;     /* borrowed */
    struct err error;   /* of RPC_ERROR: kind by code, sentence, data */
    json_t *root;       /* owned */
};

/*
 * Takes one line out of buf (bytes received so far).  Returns 1 and the line
 * without its end in *ret_line (removed from buf), 0 when no whole line is
 * there yet, a negative kind when the line is longer than RPC_LINE_MAX.
 */
int rpc_take_line(struct str *buf, struct str *ret_line, struct err *err);

/*
 * Parses one line.  On failure *ret_id is the id if one could be read (a new
 * reference), else NULL: the error answer needs it.
 */
int rpc_parse(const char *line, size_t n, struct rpc_message *ret_msg, json_t **ret_id,
              struct err *err);
void rpc_message_clear(struct rpc_message *m);

/* Each appends one whole line to out.  take_ values are consumed; id is borrowed. */
void rpc_write_request(struct str *out, const json_t *id, const char *method, json_t *take_params);
void rpc_write_notification(struct str *out, const char *method, json_t *take_params);
void rpc_write_result(struct str *out, const json_t *id, json_t *take_result);
void rpc_write_error(struct str *out, const json_t *id, const struct err *error);
