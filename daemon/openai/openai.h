/*
 * openai - the OpenAI API as objects: JSON in, a struct request out; events
 * in, JSON out.  No sockets, no HTTP.
 *
 * Unknown fields are refused by name; a known field that cannot be honoured is
 * refused unless it has its neutral value; null equals absent; numbers out of
 * range are refused, never clamped.  The fields are tables in params.c and
 * chat.c/completion.c: adding one is a row.
 *
 * Thread: LOOP.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"
#include "common/str.h"
#include "daemon/engine/engine.h"

/*
 * One answer in the making: takes the events of its request and writes what
 * the client is to get, as one JSON object or as server-sent events.
 */
struct reply;

/* Each makes the request and the reply that fits it. */
int openai_chat(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                struct err *err);
int openai_completion(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                      struct err *err);

int openai_embedding(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                     struct err *err);

void reply_destroy(struct reply *r);
bool reply_streams(const struct reply *r);

/*
 * Takes one event; appends to out what can be sent now.  A stream appends
 * frames as they come; a whole answer appends its one object at EVENT_DONE.
 * A failure appends the error object (as a frame when streaming).
 */
void reply_event(struct reply *r, const struct event *ev, struct str *out);

/* {"error": {"message", "type", "param", "code"}}, and data where the error has some. */
void openai_error(const struct err *error, struct str *out);

/* GET /v1/models and /v1/models/{id}. */
void openai_models(const struct engine *e, struct str *out);
int openai_model(const struct engine *e, const char *name, struct str *out, struct err *err);
