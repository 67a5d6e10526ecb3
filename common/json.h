/*
 * json - typed getters over jansson that fill struct err by field name.
 *
 * Each getter reads object[key] into *out.  Absent or null leaves *out as it
 * is (the caller has put the default there) and returns 0; present returns 1;
 * a wrong type, or a number outside [lo, hi], is a negative kind whose
 * sentence names the field, and err->param is the field.
 *
 * Any thread; a json_t belongs to one.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/str.h"

int json_get_bool(const json_t *object, const char *key, bool *out, struct err *err);
int json_get_int(const json_t *object, const char *key, int64_t lo, int64_t hi, int64_t *out,
                 struct err *err);
int json_get_double(const json_t *object, const char *key, double lo, double hi, double *out,
                    struct err *err);
/* The string is borrowed from object. */
int json_get_string(const json_t *object, const char *key, const char **out, struct err *err);

/* Fails on the first key of object that is not in the NULL-terminated list; names the nearest one that is. */
int json_only_keys(const json_t *object, const char *const *keys, struct err *err);

/* Parses text; the error names line and column.  Duplicate keys and depth past 2048 are refused. */
int json_parse(const char *text, size_t n, json_t **ret_value, struct err *err);

/*
 * Most bytes that json_parse needs for text, to be asked of the ledger before; no less than n.
 * "[0,0,…" takes thirty times its length.
 */
size_t json_tree_bytes(const char *text, size_t n);

/* Appends compact JSON (UTF-8 as it is, insertion order). */
void json_dump_to(const json_t *value, struct str *out);

/* A JSON string even when bytes are not valid UTF-8 (each wrong byte becomes U+FFFD).  New reference. */
json_t *json_text(const char *bytes, size_t n);
