/*
 * Command R7B and later: <|START_ACTION|>[{"tool_call_id": ..., "tool_name": ..., "parameters": {...}}]<|END_ACTION|>,
 * and the text of an answer between <|START_RESPONSE|> (or TEXT) and its END.
 */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<|START_ACTION|>", NULL};
static const char *const drops[] = {"<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|START_TEXT|>",
                                    "<|END_TEXT|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|START_ACTION|>");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_json_block(s, "<|END_ACTION|>", at_end);
}

const struct chat_dialect chat_dialect_command_r = {
    .name = "command_r",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .drops = drops,
    .special = true,
    .call = call,
};
