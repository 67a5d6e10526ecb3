/*
 * template - Jinja, the part of it that chat templates use: text in, text out.
 *
 * Pure language: no files, no network, no clock, no randomness; whoever wrote
 * the template can spend steps, depth, memory and output up to the limits and
 * then gets an error.  README.md says which part of Jinja.
 *
 * Every byte of every string remembers whether it stood in the template (or
 * in a variable of template origin) or came from a message.  Slicing, joining,
 * filters and formatting keep that, and the output lists the ranges that came
 * from messages: the tokenizer looks for control tokens only outside of them.
 *
 * A struct template is never changed after it is parsed: any thread, also
 * several at once.  A render owns all its values until it returns.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "common/err.h"
#include "common/str.h"

struct template;

/* What one render may use; 0 in a field stands for its default. */
struct template_limits {
    size_t depth;        /* nested expressions, blocks and macro calls (1000) */
    size_t steps;        /* nodes evaluated, plus work by length (20 M) */
    size_t output_bytes; /* 32 MiB */
    size_t memory_bytes; /* all values together, freed only at the end (128 MiB) */
};

enum template_origin {
    TEMPLATE_ORIGIN_TRUSTED, /* the model file or the daemon: may form control tokens */
    TEMPLATE_ORIGIN_MESSAGE, /* anything that a caller sent */
};

struct template_var {
    const char *name;
    json_t *value; /* borrowed; object keys keep their order */
    enum template_origin origin;
};

struct template_context {
    const struct template_var *vars; /* a later one of the same name wins */
    size_t n_vars;
    /*
     * Strings under this key that are on the list are trusted even inside a
     * message: the role, once checked against a list of roles, may be a part
     * of a control token ("<|" ~ role ~ "|>").  Both may be NULL.
     */
    const char *trusted_key;
    const char *const *trusted_words; /* NULL-terminated */
    struct tm now;                    /* what strftime_now() shows */
};

/* Bytes from..to of the text came from a message. */
struct template_span {
    size_t from;
    size_t to;
};

struct template_output {
    struct str text;
    struct template_span *spans; /* ascending, not touching */
    size_t n_spans;
};

/*
 * Parses text (a trailing newline is dropped; blocks are trimmed as Hugging
 * Face does: trim_blocks, lstrip_blocks).  ERR_FORMAT names the line.
 */
int template_parse(const char *text, size_t len, struct template **ret_tmpl, struct err *err);
/* In at most that many bytes of tree, of which three times as many may be allocated; else ERR_TOO_LARGE. */
int template_parse_within(const char *text, size_t len, size_t memory_bytes,
                          struct template **ret_tmpl, struct err *err);
#define TEMPLATE_MEMORY_MOST ((size_t)256 << 20)        /* of template_parse */
size_t template_memory_bytes(const struct template *t); /* what it holds, for the ledger */
void template_destroy(struct template *t);

/*
 * Renders.  limits may be NULL.  ERR_INVALID: the template called
 * raise_exception, err->text is its message alone; ERR_UNPROCESSABLE: an
 * undefined value, a wrong type and the like, with the line; ERR_TOO_LARGE: a
 * limit was reached.
 */
int template_render(const struct template *t, const struct template_context *context,
                    const struct template_limits *limits, struct template_output *ret_out,
                    struct err *err);

void template_output_clear(struct template_output *out);
