/* MiniMax M2: <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter></invoke></minimax:tool_call> */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<minimax:tool_call>", NULL};
static const char *const marks[] = {"</minimax:tool_call>", "<invoke name=", "</invoke>",
                                    "<parameter name=",     "</parameter>",  NULL};

static const struct tag_syntax syntax = {
    .call_open = "<invoke name=\"",
    .name_close = "\">",
    .key_open = "<parameter name=\"",
    .key_close = "\">",
    .value_close = "</parameter>",
    .call_close = "</invoke>",
    .block_close = "</minimax:tool_call>",
};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<minimax:tool_call>") ||
           view_has(template_text, "minimax:tool_call");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_tag_call(s, &syntax, at_end);
}

const struct chat_dialect chat_dialect_minimax = {
    .name = "minimax",
    .rank = 30,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
