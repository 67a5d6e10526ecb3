/* GigaChat 3: <|function_call|>{"name": ..., "arguments": {...}} */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<|function_call|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|function_call|>");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_json_call(s, at_end);
}

const struct chat_dialect chat_dialect_gigachat = {
    .name = "gigachat",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
