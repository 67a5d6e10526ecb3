/* The error idiom and the columns of err.def; see err.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/err.h"
#include "common/utf8.h"

struct err_row {
    const char *name;
    int http;
    int rpc;
    const char *type;
};

static const struct err_row rows[ERR_N_KINDS] = {
    [ERR_NONE] = {"NONE", 200, 0, ""},
#define ERR(kind, http, rpc, type, help) [ERR_##kind] = {#kind, http, rpc, type},
#include "common/err.def"
#undef ERR
};

/* A sentence that was cut to fit must not end within a code point: it may become JSON. */
static void trim(char *text)
{
    size_t len = strlen(text);

    text[len - utf8_incomplete_tail(text, len)] = '\0';
}

__attribute__((format(printf, 3, 0))) static int fill(struct err *err, enum err_kind kind,
                                                      const char *fmt, va_list ap)
{
    if (err) {
        err->kind = kind;
        err->param[0] = '\0';
        err->data[0] = '\0';
        if (vsnprintf(err->text, sizeof err->text, fmt, ap) >= (int)sizeof err->text)
            trim(err->text);
    }
    return -(int)kind;
}

int(err_set)(struct err *err, enum err_kind kind, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, kind, fmt, ap);
    va_end(ap);
    return -(int)kind;
}

int(err_set_param)(struct err *err, enum err_kind kind, const char *param, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, kind, fmt, ap);
    va_end(ap);
    if (err) {
        snprintf(err->param, sizeof err->param, "%s", param);
        trim(err->param);
    }
    return -(int)kind;
}

int(err_set_errno)(struct err *err, enum err_kind kind, int errnum, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    fill(err, kind, fmt, ap);
    va_end(ap);
    if (err) {
        char buf[128];
        size_t len = strlen(err->text);

        snprintf(err->text + len, sizeof err->text - len, ": %s",
                 strerror_r(errnum, buf, sizeof buf));
        trim(err->text);
    }
    return -(int)kind;
}

void err_clear(struct err *err)
{
    memset(err, 0, sizeof *err);
}

static const struct err_row *row_of(int kind)
{
    kind = abs(kind);
    return &rows[kind < ERR_N_KINDS ? kind : ERR_INTERNAL];
}

const char *err_name(int kind)
{
    return row_of(kind)->name;
}

int err_http_status(int kind)
{
    return row_of(kind)->http;
}

int err_rpc_code(int kind)
{
    return row_of(kind)->rpc;
}

const char *err_openai_type(int kind)
{
    return row_of(kind)->type;
}
