/* See parse.h. */
#include "daemon/engine/parse.h"

#include <string.h>

#include "common/alloc.h"
#include "daemon/chat/chat.h"

/* The tree of a template: where it begins, and what a byte of text takes of it; about 30 in most. */
#define TREE_LEAST    ((size_t)64 << 10)
#define TREE_PER_BYTE ((size_t)64)

int parse_template_within(const char *text, const struct parse_room *room,
                          struct chat_template **ret, struct err *err)
{
    size_t len = text ? strlen(text) : 0;
    size_t tree = MIN(TREE_LEAST + TREE_PER_BYTE * len, TEMPLATE_MEMORY_MOST);

    for (;;) {
        size_t held = 3 * tree + len;
        int r = room->reserve(room->arg, held, err);

        if (r < 0)
            return r;
        r = chat_template_create_within(text, len, tree, ret, err);
        room->release(room->arg, held);
        if (r != -ERR_TOO_LARGE || tree == TEMPLATE_MEMORY_MOST)
            return r;
        tree = MIN(tree * 4, TEMPLATE_MEMORY_MOST);
    }
}
