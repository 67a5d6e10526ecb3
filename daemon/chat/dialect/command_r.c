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

enum { FIRST, LIST, CLOSE };

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    enum call_step step;

    (void)which;
    if (split_phase(s) == FIRST) {
        split_skip_space(s);
        switch (split_accept(s, "[", at_end)) {
        case 0: return CALL_MORE;
        case 1: split_set_phase(s, LIST); break;
        default: return CALL_BAD;
        }
    }
    if (split_phase(s) == LIST) {
        step = split_json_list(s, at_end);
        if (step != CALL_DONE)
            return step;
        split_set_phase(s, CLOSE);
    }
    return split_close(s, "<|END_ACTION|>", at_end);
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
