/* Hermes, Qwen 2.5 and 3, and many more: <tool_call>{"name": ..., "arguments": {...}}</tool_call> */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<tool_call>", NULL};
static const char *const marks[] = {"</tool_call>", NULL};

static bool detect(struct view template_text)
{
    /* Others put tags of their own inside; those that are known have a lower rank. */
    return view_has(template_text, "<tool_call>") && !view_has(template_text, "<invoke");
}

enum { OBJECT, CLOSE };

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    enum call_step step;

    (void)which;
    if (split_phase(s) == OBJECT) {
        step = split_json_call(s, at_end);
        if (step != CALL_DONE)
            return step;
        split_set_phase(s, CLOSE);
    }
    return split_close(s, "</tool_call>", at_end);
}

const struct chat_dialect chat_dialect_hermes = {
    .name = "hermes",
    .rank = 50,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
