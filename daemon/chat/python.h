/*
 * python - values and calls as Python writes them: 'text', True, None,
 * [1, 'a'], {'k': (2,)}, NAME(key=value, ...).  Some models write the arguments
 * of their tool calls so.  Nothing is evaluated: what is no literal is no value.
 *
 * Pure.  Depth is bounded, so hostile text costs its length.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "common/str.h"

/* A place in a text. */
struct python_reader {
    struct view text; /* valid UTF-8 */
    size_t at;
    int deep;
};

/* Skips white space, then c; false (and only white space skipped) when something else stands there. */
bool python_accept(struct python_reader *r, char c);
/* A new reference, or NULL; numbers, texts and words in the JSON manner are read as well. */
json_t *python_value(struct python_reader *r);
/* NAME(key=value, ...): the arguments as an object, or NULL. */
json_t *python_call(struct python_reader *r, struct view *ret_name);

/* The whole of text as one value, or NULL. */
json_t *python_literal(struct view text);
