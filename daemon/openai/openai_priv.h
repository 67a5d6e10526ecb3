/*
 * What the files of this room share: the field tables and the parser's state.
 */
#pragma once

#include "common/json.h"
#include "daemon/openai/openai.h"

enum face { FACE_CHAT = 1, FACE_COMPLETION = 2, FACE_BOTH = 3, FACE_EMBEDDING = 4, FACE_ALL = 7 };

/* What a request's body says besides the engine's part. */
struct reply_options {
    bool stream;
    bool include_usage;
    bool logprobs;
    bool base64; /* embeddings as bytes of little-endian floats */
};

struct parse {
    enum face face;
    struct request *request;
    struct reply_options reply;
    int64_t max_tokens, max_completion_tokens; /* −1: absent */
    bool has_tools, no_tools;
};

/* A field that needs more than a range: value is neither absent nor null. */
typedef int field_fn(struct parse *p, const char *name, const json_t *value, struct err *err);

struct field {
    const char *name;
    unsigned faces;
    field_fn *parse;
};

/* Refuses unknown fields, then parses all that the face knows: numbers, shared fields, and own[]. */
int params_parse(struct parse *p, const json_t *body, const struct field *own, size_t n_own,
                 struct err *err);

/* A text or an array of token ids under the name; both outputs as in struct request. */
int params_text(const json_t *value, char **ret_text, size_t *ret_len);
int params_ids(const char *name, const json_t *list, int32_t **ret_ids, size_t *ret_n,
               struct err *err);

/* "must be …" errors in one voice. */
int params_wrong(struct err *err, const char *name, const char *must_be);

/* Refuses fields of the object called name that are not in the NULL-terminated list. */
int params_only_keys(const json_t *object, const char *name, const char *const *keys,
                     struct err *err);

struct reply *reply_create(enum request_kind kind, const struct reply_options *opt,
                           unsigned n_choices);

/* stream.c, reply.c */
json_t *reply_usage(const struct request_usage *u);
json_t *reply_timings(const struct request_timings *t);
json_t *reply_sampling(const struct sampling_options *s);
