/* Qwen3-Coder, Nemotron, Step: <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call> */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<tool_call>", NULL};

static const struct tag_syntax syntax = {
    .call_open = "<function=",
    .name_close = ">",
    .key_open = "<parameter=",
    .key_close = ">",
    .value_close = "</parameter>",
    .call_close = "</function>",
    .block_close = "</tool_call>",
};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<tool_call>") && view_has(template_text, "<function=") &&
           view_has(template_text, "<parameter=");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_tag_call(s, &syntax, at_end);
}

const struct chat_dialect chat_dialect_qwen3_coder = {
    .name = "qwen3_coder",
    .rank = 30,
    .detect = detect,
    .opens = opens,
    .call = call,
};
