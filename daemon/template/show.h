/*
 * show - values as text: str() and repr() as Python shows them, "%" and
 * str.format, and JSON as json.dumps(ensure_ascii=False) writes it.
 */
#pragma once

#include "daemon/template/text.h"
#include "daemon/template/value.h"

const struct text *show_str(struct render *r, struct value v);
void show_add_str(struct render *r, struct buffer *b, struct value v);
void show_add_repr(struct render *r, struct buffer *b, struct value v);
/* Shortest digits that read back as d, in Python's form; buf of at least 40 bytes. */
const char *show_float(double d, char *buf);
/* Decimal digits of any width; buf of at least 48 bytes. */
const char *show_int(__int128 i, char *buf);

struct show_json {
    bool ascii; /* \\u for everything else */
    int indent; /* -1: one line */
    const char *item_separator;
    const char *key_separator;
    bool sort_keys;
};

void show_add_json(struct render *r, struct buffer *b, struct value v, const struct show_json *how);

/* "%s has %d" % args, where args is a tuple or one value. */
const struct text *show_percent(struct render *r, const struct text *fmt, struct value args);

struct args;
/* "{} {name:>5}".format(...) */
const struct text *show_braces(struct render *r, const struct text *fmt, const struct args *args);
