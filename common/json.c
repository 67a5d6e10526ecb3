/* Typed getters, parsing and writing over jansson; see json.h. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "common/utf8.h"

#define SHOWN_MAX 64

/* A name from outside, fit for a sentence: cut at a code point, and no control characters. */
static size_t shown(const char *text, char out[SHOWN_MAX])
{
    size_t len = strnlen(text, SHOWN_MAX);

    if (len == SHOWN_MAX)
        len = SHOWN_MAX - 1;
    len -= utf8_incomplete_tail(text, len);
    for (size_t i = 0; i < len; i++)
        out[i] = (char)((unsigned char)text[i] < 0x20 || text[i] == 0x7F ? '?' : text[i]);
    out[len] = '\0';
    return len;
}

static const char *type_name(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER: return "an integer";
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    default: return "null";
    }
}

static int wrong_type(const char *key, const json_t *value, const char *want, struct err *err)
{
    return err_set_param(err, ERR_INVALID, key, "'%s' must be %s, not %s", key, want,
                         type_name(value));
}

/* NULL when absent or null. */
static const json_t *present(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_null(value) ? NULL : value;
}

int json_get_bool(const json_t *object, const char *key, bool *out, struct err *err)
{
    const json_t *value = present(object, key);

    if (!value)
        return 0;
    if (!json_is_boolean(value))
        return wrong_type(key, value, "true or false", err);
    *out = json_is_true(value);
    return 1;
}

int json_get_int(const json_t *object, const char *key, int64_t lo, int64_t hi, int64_t *out,
                 struct err *err)
{
    const json_t *value = present(object, key);
    int64_t n;

    if (!value)
        return 0;
    if (json_is_integer(value)) {
        n = json_integer_value(value);
    } else if (json_is_real(value)) {
        /* JSON has one kind of number: 3.0 is an integer.  2^63 itself no longer fits. */
        double d = json_real_value(value);
        double past = (double)(1ull << 63);

        if (d != trunc(d) || d < -past || d >= past)
            return wrong_type(key, value, "an integer", err);
        n = (int64_t)d;
    } else {
        return wrong_type(key, value, "an integer", err);
    }
    if (n < lo || n > hi)
        return err_set_param(err, ERR_INVALID, key, "'%s' is %lld; it must be from %lld to %lld",
                             key, (long long)n, (long long)lo, (long long)hi);
    *out = n;
    return 1;
}

int json_get_double(const json_t *object, const char *key, double lo, double hi, double *out,
                    struct err *err)
{
    const json_t *value = present(object, key);
    double d;

    if (!value)
        return 0;
    if (!json_is_number(value))
        return wrong_type(key, value, "a number", err);
    d = json_number_value(value);
    if (!(d >= lo && d <= hi))
        return err_set_param(err, ERR_INVALID, key, "'%s' is %g; it must be from %g to %g", key, d,
                             lo, hi);
    *out = d;
    return 1;
}

int json_get_string(const json_t *object, const char *key, const char **out, struct err *err)
{
    const json_t *value = present(object, key);

    if (!value)
        return 0;
    if (!json_is_string(value))
        return wrong_type(key, value, "a string", err);
    *out = json_string_value(value);
    return 1;
}

/* Levenshtein distance of two short words. */
static size_t distance(const char *a, size_t n_a, const char *b)
{
    size_t row[SHOWN_MAX + 1];
    size_t n_b = strnlen(b, SHOWN_MAX);

    for (size_t j = 0; j <= n_b; j++)
        row[j] = j;
    for (size_t i = 1; i <= n_a; i++) {
        size_t diagonal = row[0];

        row[0] = i;
        for (size_t j = 1; j <= n_b; j++) {
            size_t change = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            row[j] = MIN(change, MIN(row[j], row[j - 1]) + 1);
        }
    }
    return row[n_b];
}

static int unknown_key(const char *key, const char *const *keys, struct err *err)
{
    const char *nearest = NULL;
    char name[SHOWN_MAX];
    size_t len = shown(key, name);
    size_t best = len / 2 + 1;

    for (; *keys; keys++) {
        size_t d = distance(name, len, *keys);

        if (d < best) {
            best = d;
            nearest = *keys;
        }
    }
    if (nearest)
        return err_set_param(err, ERR_INVALID, name,
                             "the field '%s' is not known; did you mean '%s'?", name, nearest);
    return err_set_param(err, ERR_INVALID, name, "the field '%s' is not known; leave it out", name);
}

int json_only_keys(const json_t *object, const char *const *keys, struct err *err)
{
    /* jansson's iterators take no const, but json_object_iter() changes nothing. */
    json_t *o = (json_t *)(uintptr_t)object;

    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        const char *key = json_object_iter_key(at);
        const char *const *known = keys;

        while (*known && strcmp(key, *known) != 0)
            known++;
        if (!*known)
            return unknown_key(key, keys, err);
    }
    return 0;
}

/* A value, an object and an array with their share of their tables, rounded up by malloc. */
size_t json_tree_bytes(const char *text, size_t n)
{
    size_t bytes = n + 256;
    bool inside = false;

    for (size_t i = 0; i < n; i++) {
        if (inside) {
            if (text[i] == '\\')
                i++; /* what it escapes, and that may be a quote */
            else
                inside = text[i] != '"';
            continue;
        }
        switch (text[i]) {
        case '"':
            inside = true;
            bytes += 80;
            break;
        case ',': bytes += 64; break;
        case ':': bytes += 144; break;
        case '[': bytes += 192; break;
        case '{': bytes += 288; break;
        default: break;
        }
    }
    return bytes;
}

int json_parse(const char *text, size_t n, json_t **ret_value, struct err *err)
{
    json_error_t e;
    json_t *value = json_loadb(n ? text : "", n, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &e);
    char why[sizeof e.text];
    size_t len = 0;

    if (value) {
        *ret_value = value;
        return 0;
    }
    /* The library quotes the text near the fault, which may be any bytes. */
    for (const char *p = e.text; *p; p++)
        why[len++] = (char)((unsigned char)*p < 0x20 || (unsigned char)*p > 0x7E ? '?' : *p);
    why[len] = '\0';
    return err_set(err, ERR_PARSE, "not valid JSON at line %d, column %d: %s", e.line, e.column,
                   why);
}

static void dump_string(const char *p, size_t n, struct str *out)
{
    size_t done = 0;

    str_addc(out, '"');
    for (size_t i = 0; i < n; i++) {
        static const char from[] = "\"\\\b\f\n\r\t", to[] = "\"\\bfnrt";
        unsigned char c = (unsigned char)p[i];
        const char *at;

        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        str_add(out, p + done, i - done);
        done = i + 1;
        at = c ? strchr(from, c) : NULL;
        if (at)
            str_addf(out, "\\%c", to[at - from]);
        else
            str_addf(out, "\\u%04x", c);
    }
    str_add(out, p + done, n - done);
    str_addc(out, '"');
}

/* The fewest digits that read back as the same double. */
static void dump_real(double d, struct str *out)
{
    char buf[40];

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, d);
        if (strtod(buf, NULL) == d)
            break;
    }
    str_adds(out, buf);
    if (!strpbrk(buf, ".e"))
        str_adds(out, ".0");
}

static void dump_object(const json_t *value, struct str *out)
{
    json_t *o = (json_t *)(uintptr_t)value;
    const char *between = "{";

    for (void *at = json_object_iter(o); at; at = json_object_iter_next(o, at)) {
        str_adds(out, between);
        dump_string(json_object_iter_key(at), json_object_iter_key_len(at), out);
        str_addc(out, ':');
        json_dump_to(json_object_iter_value(at), out);
        between = ",";
    }
    str_adds(out, *between == '{' ? "{}" : "}");
}

void json_dump_to(const json_t *value, struct str *out)
{
    switch (json_typeof(value)) {
    case JSON_OBJECT: dump_object(value, out); break;
    case JSON_ARRAY:
        str_addc(out, '[');
        for (size_t i = 0; i < json_array_size(value); i++) {
            if (i)
                str_addc(out, ',');
            json_dump_to(json_array_get(value, i), out);
        }
        str_addc(out, ']');
        break;
    case JSON_STRING: dump_string(json_string_value(value), json_string_length(value), out); break;
    case JSON_INTEGER: str_addf(out, "%lld", (long long)json_integer_value(value)); break;
    case JSON_REAL: dump_real(json_real_value(value), out); break;
    case JSON_TRUE: str_adds(out, "true"); break;
    case JSON_FALSE: str_adds(out, "false"); break;
    case JSON_NULL: str_adds(out, "null"); break;
    }
}

json_t *json_text(const char *bytes, size_t n)
{
    struct str clean = {0};
    json_t *value;
    unsigned cp;

    if (utf8_valid(bytes, n))
        return json_stringn_nocheck(n ? bytes : "", n);
    for (size_t i = 0; i < n;) {
        size_t len = utf8_decode(bytes + i, n - i, &cp);

        str_add_utf8(&clean, cp);
        i += len ? len : 1;
    }
    value = json_stringn_nocheck(str_text(&clean), clean.len);
    str_clear(&clean);
    return value;
}
