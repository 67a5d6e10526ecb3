/* Llama 3.1 to 3.3: the whole answer is {"name": ..., "parameters": {...}}, with or without <|python_tag|>. */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<|python_tag|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|start_header_id|>") &&
           (view_has(template_text, "<|python_tag|>") ||
            view_has(template_text, "\"parameters\": "));
}

enum { OBJECT, SEMICOLON };

/* Several calls stand in a row with ";" between them. */
static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    enum call_step step;

    (void)which;
    for (;;) {
        if (split_phase(s) == OBJECT) {
            step = split_json_call(s, at_end);
            if (step != CALL_DONE)
                return step;
            split_end_call(s);
            split_set_phase(s, SEMICOLON);
        }
        split_skip_space(s);
        switch (split_accept(s, ";", at_end)) {
        case 0: return CALL_MORE;
        case 1: split_again(s); break;
        default: return CALL_DONE;
        }
    }
}

const struct chat_dialect chat_dialect_llama3 = {
    .name = "llama3",
    .rank = 40,
    .detect = detect,
    .opens = opens,
    .bare = true,
    .special = true,
    .call = call,
};
