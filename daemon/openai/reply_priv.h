/*
 * The state of an answer in the making, shared by reply.c (whole answers) and
 * stream.c (server-sent events).
 */
#pragma once

#include "daemon/openai/openai_priv.h"

struct choice {
    struct str content;
    struct str reasoning;
    json_t *tool_calls;   /* array, or NULL */
    struct str arguments; /* of the last call, until it is complete */
    json_t *
        logprobs; /* array of OpenAI's token objects (chat), or the object of four arrays (completion) */
    enum finish finish;
    bool begun; /* stream: the role has been sent */
};

struct reply {
    enum request_kind kind;
    struct reply_options opt;
    char id[48];
    int64_t created;
    char model[128];
    struct choice *choices;
    unsigned n_choices;
    json_t *vectors; /* of embeddings, in order; else NULL */
    bool done;
};

/* One event as frames. */
void stream_event(struct reply *r, const struct event *ev, struct str *out);
/* {"content": [...], "refusal": null} or the four arrays, of these tokens; NULL unless asked for. */
json_t *reply_logprobs(const struct reply *r, const struct token_logprob *list, size_t n);
/* The same for embeddings: embedding.c. */
void embedding_event(struct reply *r, const struct event *ev, struct str *out);
/* A float as the shortest decimal that reads back as the same float, not as the double behind it. */
json_t *reply_float(float f);
/* Common head of every object of this answer: id, object, created, model. */
json_t *reply_head(const struct reply *r, const char *object);
