/*
 * Hunyuan 3: <tool_calls>, then for each call
 * <tool_call>NAME<tool_sep><arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call>, then </tool_calls>;
 * in the weights that are given away every tag ends in ":opensource>".
 */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<tool_calls:opensource>", "<tool_calls>", NULL};

#define SYNTAX(end)                                                                                \
    {                                                                                              \
        .call_open = "<tool_call" end, .name_close = "<tool_sep" end, .key_open = "<arg_key" end,  \
        .key_close = "</arg_key" end, .value_open = "<arg_value" end,                              \
        .value_close = "</arg_value" end, .call_close = "</tool_call" end,                         \
        .block_close = "</tool_calls" end                                                          \
    }

static const struct tag_syntax syntax[] = {SYNTAX(":opensource>"), SYNTAX(">")};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<tool_sep") && view_has(template_text, "<arg_key");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    return split_tag_call(s, &syntax[which], at_end);
}

const struct chat_dialect chat_dialect_hy3 = {
    .name = "hy3",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
