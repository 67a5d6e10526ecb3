/*
 * Kimi K3: <|open|>TAG KEY="VALUE"<|sep|> and <|close|>TAG<|sep|> in the place of XML's brackets; an answer is
 * think, response, and tools, in which each call holds its arguments with their types.
 */
#include "daemon/chat/dialect.h"

#define OPEN(tag)  "<|open|>" tag
#define CLOSE(tag) "<|close|>" tag "<|sep|>"

static const char *const opens[] = {OPEN("tools<|sep|>"), NULL};
static const char *const drops[] = {OPEN("response<|sep|>"), CLOSE("response"), CLOSE("message"),
                                    "<|end_of_msg|>", NULL};

static const struct tag_syntax syntax = {
    .call_open = OPEN("call tool=\""),
    .name_close = "<|sep|>",
    .key_open = OPEN("argument key=\""),
    .key_close = "<|sep|>",
    .value_close = CLOSE("argument"),
    .call_close = CLOSE("call"),
    .block_close = CLOSE("tools"),
};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|open|>") && view_has(template_text, "<|close|>") &&
           view_has(template_text, "<|end_of_msg|>");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_tag_call(s, &syntax, at_end);
}

const struct chat_dialect chat_dialect_kimi_k3 = {
    .name = "kimi_k3",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .drops = drops,
    .special = true,
    .call = call,
};
