/*
 * LFM2: <|tool_call_start|>[NAME(key='text', n=1), ...]<|tool_call_end|>: calls as Python writes them.
 *
 * They are read when the block is whole: before its end a text cannot be told
 * from the code around it.
 */
#include <string.h>

#include "common/json.h"
#include "common/utf8.h"
#include "daemon/chat/dialect.h"
#include "daemon/chat/python.h"

#define CLOSE "<|tool_call_end|>"

static const char *const opens[] = {"<|tool_call_start|>", NULL};

static bool detect(struct view template_text)
{
    /* Templates that leave calls to the message's text name the list of tools alone. */
    return view_has(template_text, "<|tool_call_start|>") ||
           view_has(template_text, "<|tool_list_start|>") ||
           view_has(template_text, "List of tools: [");
}

static void give_call(struct chat_split *s, struct view name, const json_t *arguments)
{
    struct str text = {0};

    json_dump_to(arguments, &text);
    split_begin_call(s, name);
    split_arguments(s, view_of_str(&text));
    split_end_call(s);
    str_clear(&text);
}

/* All calls of a block: read twice, so that a wrong one leaves none behind. */
static bool read_block(struct chat_split *s, struct view text, bool give)
{
    struct python_reader r = {.text = text};
    bool more;

    if (!python_accept(&r, '['))
        return false;
    do {
        struct view name;
        json_t *arguments = python_call(&r, &name);

        if (!arguments)
            return false;
        if (give)
            give_call(s, name, arguments);
        json_decref(arguments);
        more = python_accept(&r, ',');
    } while (more);
    return python_accept(&r, ']');
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    static const char *const close[] = {CLOSE, NULL};
    size_t safe;
    ptrdiff_t at = split_find(s, close, &which, &safe);
    struct view held = split_held(s);
    struct view block = view_sub(held, 0, at < 0 ? held.len : (size_t)at);

    if (at < 0 && !at_end)
        return CALL_MORE;
    if (!utf8_valid(block.p, block.len) || !read_block(s, block, false))
        return CALL_BAD;
    read_block(s, block, true);
    split_consume(s, block.len + (at < 0 ? 0 : strlen(CLOSE)));
    return CALL_DONE;
}

const struct chat_dialect chat_dialect_lfm2 = {
    .name = "lfm2",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
