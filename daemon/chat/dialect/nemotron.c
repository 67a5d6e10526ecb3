/* Nemotron Nano: <TOOLCALL>[{"name": ..., "arguments": {...}}, ...]</TOOLCALL> */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<TOOLCALL>", NULL};
static const char *const marks[] = {"</TOOLCALL>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<TOOLCALL>");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_json_block(s, "</TOOLCALL>", at_end);
}

const struct chat_dialect chat_dialect_nemotron = {
    .name = "nemotron",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
