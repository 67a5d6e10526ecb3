/* Granite 3: <|tool_call|>[{"name": ..., "arguments": {...}}, ...], to the end of the answer. */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<|tool_call|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|tool_call|>");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_json_block(s, NULL, at_end);
}

const struct chat_dialect chat_dialect_granite = {
    .name = "granite",
    .rank = 45,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
