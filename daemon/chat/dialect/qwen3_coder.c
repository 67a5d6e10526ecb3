/*
 * Qwen3-Coder, Nemotron 3, Step, and Seed (with seed: before tool_call):
 * <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function></tool_call>
 */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<tool_call>", "<seed:tool_call>", NULL};
static const char *const marks[] = {
    "</tool_call>", "</seed:tool_call>", "<function=", "</function>",
    "<parameter=",  "</parameter>",      NULL};

#define SYNTAX(block)                                                                              \
    {                                                                                              \
        .call_open = "<function=", .name_close = ">", .key_open = "<parameter=", .key_close = ">", \
        .value_close = "</parameter>", .call_close = "</function>", .block_close = block           \
    }

static const struct tag_syntax syntax[] = {SYNTAX("</tool_call>"), SYNTAX("</seed:tool_call>")};

static bool detect(struct view template_text)
{
    return view_has(template_text, "tool_call>") && view_has(template_text, "<function=") &&
           view_has(template_text, "<parameter=");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    return split_tag_call(s, &syntax[which], at_end);
}

const struct chat_dialect chat_dialect_qwen3_coder = {
    .name = "qwen3_coder",
    .rank = 30,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
