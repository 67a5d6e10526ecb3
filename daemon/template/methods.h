/*
 * methods - the rows of the method tables: methods.c finds them, and holds
 * those of lists, dicts and small objects; methods_text.c those of strings.
 */
#pragma once

#include "daemon/template/eval.h"

struct method_row {
    enum value_type type;
    const char *name;
    method_fn *call;
};

extern const struct method_row methods_text[]; /* ends with a NULL name */
