/*
 * parse - chat templates of files, parsed within a budget: who asks charges what a
 * parser may take before it does, and more of it until that is enough.
 *
 * ENGINE or IO.
 */
#pragma once

#include <stddef.h>

#include "common/err.h"

struct chat_template;

/* Whom to charge. */
struct parse_room {
    int (*reserve)(void *arg, size_t bytes, struct err *err);
    void (*release)(void *arg, size_t bytes);
    void *arg;
};

/*
 * text: NULL for none, which is ChatML.  Nothing is charged any more when it returns:
 * *ret holds chat_template_memory_bytes().  What reserve says, or what is wrong with
 * the template.
 */
int parse_template_within(const char *text, const struct parse_room *room,
                          struct chat_template **ret, struct err *err);
