/* GLM 4.5 and later: <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value></tool_call> */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<tool_call>", NULL};
static const char *const marks[] = {"<arg_key>",    "</arg_key>",   "<arg_value>",
                                    "</arg_value>", "</tool_call>", NULL};

static const struct tag_syntax syntax = {
    .key_open = "<arg_key>",
    .key_close = "</arg_key>",
    .value_open = "<arg_value>",
    .value_close = "</arg_value>",
    .call_close = "</tool_call>",
};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<tool_call>") && view_has(template_text, "<arg_key>");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_tag_call(s, &syntax, at_end);
}

const struct chat_dialect chat_dialect_glm = {
    .name = "glm",
    .rank = 30,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
