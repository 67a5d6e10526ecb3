/*
 * value - what a template computes with.
 *
 * A value is passed by value (32 bytes); what it points to lives in the arena
 * of its render, or in that of the template for constants.  Strings, tuples
 * and ranges never change; lists and dicts may (append, pop, update).
 *
 * Strings are UTF-8 and carry the origin of every byte: `marks`, one byte for
 * each byte of text, or the one mark `origin` where they are all the same.
 * Python's indices are code points, so text is walked to find one; that work
 * is counted against the steps, as is everything else that takes time by the
 * size of a value.
 *
 * All functions leave by render_fail() when something is wrong.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/template/template.h"

struct render;

enum value_type {
    VALUE_UNDEFINED,
    VALUE_NONE,
    VALUE_BOOL,
    VALUE_INT,
    VALUE_FLOAT,
    VALUE_STRING,
    VALUE_LIST,
    VALUE_TUPLE,
    VALUE_RANGE,
    VALUE_DICT,
    VALUE_NAMESPACE,
    VALUE_LOOP,
    VALUE_MACRO,
    VALUE_FUNCTION, /* a global: range, dict, ... */
    VALUE_METHOD,   /* bound: 'a'.upper */
    VALUE_CYCLER,
    VALUE_JOINER,
};

struct text {
    const char *p;
    size_t len;
    const unsigned char *marks; /* NULL: all bytes are `origin` */
    unsigned char origin;       /* enum template_origin */
    struct buffer *tail;        /* where p lies, if it can be appended to in place; or NULL */
};

struct value {
    enum value_type type;
    union {
        const struct undefined *undefined;
        bool boolean;
        __int128 integer;
        double real;
        const struct text *text;
        struct list *list; /* and tuple */
        const struct range *range;
        struct dict *dict; /* and namespace */
        struct loop *loop;
        const struct macro *macro;
        const struct function *function;
        const struct method *method;
        struct cycler *cycler;
        struct joiner *joiner;
    };
};

/* Why a value is undefined: a name, or a look-up in an object. */
struct undefined {
    const char *object; /* NULL for a name; else "str object", "None" */
    const char *key;    /* as shown: items, 0 */
    bool element;       /* key is an index */
};

struct list {
    struct value *items;
    size_t n;
    size_t cap;
};

struct range {
    int64_t start;
    int64_t step;
    size_t n;
};

struct dict_item {
    struct value key;
    struct value value;
    uint64_t hash;
};

/* Ordered by insertion; slots (open addressing, item index + 1) from 9 items on. */
struct dict {
    struct dict_item *items;
    size_t n;
    size_t cap;
    uint32_t *slots;
    size_t n_slots;
};

struct cycler {
    struct list *items;
    size_t at;
};

struct joiner {
    const struct text *separator;
    bool used;
};

/* A run of values that is being iterated; changes to the list do not reach it. */
struct items {
    const struct value *p;
    size_t n;
};

/* -- making values ------------------------------------------------------- */

static inline struct value value_none(void)
{
    return (struct value){.type = VALUE_NONE};
}

static inline struct value value_bool(bool b)
{
    return (struct value){.type = VALUE_BOOL, .boolean = b};
}

static inline struct value value_int(__int128 i)
{
    return (struct value){.type = VALUE_INT, .integer = i};
}

static inline struct value value_float(double d)
{
    return (struct value){.type = VALUE_FLOAT, .real = d};
}

static inline struct value value_text(const struct text *t)
{
    return (struct value){.type = VALUE_STRING, .text = t};
}

static inline struct value value_list(struct list *l)
{
    return (struct value){.type = VALUE_LIST, .list = l};
}

static inline struct value value_dict(struct dict *d)
{
    return (struct value){.type = VALUE_DICT, .dict = d};
}

struct value value_undefined_name(struct render *r, const char *name);
struct value value_undefined_key(struct render *r, struct value object, struct value key);
/* A string of template origin; p must outlive the render (a literal). */
struct value value_cstr(struct render *r, const char *p);
struct value value_range(struct render *r, int64_t start, int64_t stop, int64_t step);
/* depth: how deep in the document; too deep is refused. */
struct value value_of_json(struct render *r, const json_t *json, enum template_origin origin);

/* -- lists and dicts ----------------------------------------------------- */

struct list *list_new(struct render *r, size_t cap);
void list_add(struct render *r, struct list *l, struct value v);
struct list *list_pair(struct render *r, struct value a, struct value b);
struct value value_pair(struct render *r, struct value a, struct value b); /* a tuple */

struct dict *dict_new(struct render *r);
bool value_is_hashable(struct render *r,
                       struct value v); /* lists and dicts, also inside of tuples, are not */
/* NULL when the key is not there. */
struct value *dict_find(struct render *r, const struct dict *d, struct value key);
struct value *dict_find_cstr(struct render *r, const struct dict *d, const char *key);
void dict_put(struct render *r, struct dict *d, struct value key, struct value v);
bool dict_remove(struct render *r, struct dict *d, struct value key);
struct list *dict_pairs(struct render *r, const struct dict *d); /* (key, value) tuples */

/* -- asking values ------------------------------------------------------- */

bool value_truth(struct render *r, struct value v);
bool value_is_number(struct value v); /* int, float, bool */
bool value_is_list(struct value v);   /* list or tuple */
double value_as_double(struct value v);
bool value_equal(struct render *r, struct value a, struct value b);
/* < 0, 0, > 0; fails where Python has no order; op is for the message ("<"). */
int value_compare(struct render *r, struct value a, struct value b, const char *op);
bool value_contains(struct render *r, struct value haystack, struct value needle);
/* Code points, items; -1 when it has no length. */
int64_t value_length(struct render *r, struct value v);
struct items value_items(struct render *r, struct value v);
const char *value_type_name(struct value v);                /* Python's: "str", "NoneType" */
struct value value_known(struct render *r, struct value v); /* fails when undefined */
/* list[i] of anything that can be iterated, without a copy for lists and ranges. */
struct value range_at(const struct range *range, size_t i);
