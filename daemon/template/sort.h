/*
 * sort - what the filters that order and pick share: a path of attributes
 * ("a.b.0"), keys that ignore case, and a stable sort.
 */
#pragma once

#include "daemon/template/eval.h"

struct attr_path {
    struct value *steps; /* strings and integers; none: the item itself */
    size_t n;
};

/* attribute NULL or none: the item itself. */
struct attr_path attr_path_of(struct render *r, const struct value *attribute);
/* Undefined as soon as one step is not there. */
struct value attr_path_get(struct render *r, const struct attr_path *path, struct value v);

/* fold: strings compare without case. */
struct value sort_key(struct render *r, struct value v, bool fold);
/* The key of an item by "a.b,c": one key, or a list of them. */
struct value sort_keys_of(struct render *r, const struct value *attribute, struct value v,
                          bool fold);
/* Stable; in reverse, equal items keep their order too. */
struct list *sort_by_keys(struct render *r, struct items items, const struct value *keys,
                          bool reverse);
