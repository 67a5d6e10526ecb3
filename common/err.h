/*
 * err - the one error idiom.
 *
 * A function that can fail returns int: 0 or a count on success, a negative
 * kind on failure, and has then written ONE sentence into the caller's
 * struct err, its last parameter.  Who creates the error writes the sentence;
 * who passes it on adds nothing.  err may be NULL where nobody reads it.
 *
 * A kind is one row of err.def, which also fixes its HTTP status, JSON-RPC
 * code and OpenAI error.type: both faces agree by construction.  To add a
 * kind, add a row.
 *
 * Any thread.
 */
#pragma once

#include <stddef.h>

enum err_kind {
    ERR_NONE,
#define ERR(kind, http, rpc, type, help) ERR_##kind,
#include "common/err.def"
#undef ERR
    ERR_N_KINDS
};

struct err {
    enum err_kind kind;
    char text[512];  /* the sentence; always terminated */
    char param[96];  /* the field, key or tensor it is about; "" if none */
    char data[1536]; /* a JSON object with more (a refused charge: its sum); "" if none */
};

/* Writes kind and sentence, clears param and data, returns -kind. */
int err_set(struct err *err, enum err_kind kind, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* As err_set, and names the field it is about. */
int err_set_param(struct err *err, enum err_kind kind, const char *param, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/* As err_set, with ": " and the text of errno value errnum appended (thread-safe). */
int err_set_errno(struct err *err, enum err_kind kind, int errnum, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * The compiler and the analyzers see one file at a time: this tells them that
 * the three above always return a negative value, so that what a failed call
 * did not write is known to be unused.
 */
static inline int err_negative(int r)
{
    return r < 0 ? r : -(int)ERR_INTERNAL;
}
#define err_set(err, ...)       err_negative(err_set(err, __VA_ARGS__))
#define err_set_param(err, ...) err_negative(err_set_param(err, __VA_ARGS__))
#define err_set_errno(err, ...) err_negative(err_set_errno(err, __VA_ARGS__))

void err_clear(struct err *err);

/* Columns of err.def for a kind (or for a negative return value). */
const char *err_name(int kind);        /* "NOT_FOUND" */
int err_http_status(int kind);         /* 404 */
int err_rpc_code(int kind);            /* -32004 */
const char *err_openai_type(int kind); /* "not_found_error" */
