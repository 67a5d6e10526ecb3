/*
 * Apriel: <tool_calls>[{"name": ..., "arguments": {...}}, ...]</tool_calls>, and MiniMax M1, which writes the
 * objects in a row without brackets.
 */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<tool_calls>", NULL};
static const char *const drops[] = {"[END FINAL RESPONSE]", NULL};
static const char *const marks[] = {"</tool_calls>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<tool_calls>");
}

enum { FIRST, LIST, ROW, OBJECT, CLOSE };

/* Between the objects of a row: another one, or what ends it. */
static void step_row(struct chat_split *s)
{
    split_skip_space(s);
    if (split_held(s).len)
        split_set_phase(s, split_held(s).p[0] == '{' ? OBJECT : CLOSE);
}

static enum call_step step_object(struct chat_split *s, bool at_end)
{
    enum call_step step = split_json_call(s, at_end);

    if (step != CALL_DONE)
        return step;
    split_end_call(s);
    split_again(s);
    split_set_phase(s, ROW);
    return CALL_MORE;
}

static enum call_step step_first(struct chat_split *s, bool at_end)
{
    split_skip_space(s);
    switch (split_accept(s, "[", at_end)) {
    case 0: return CALL_MORE;
    case 1: split_set_phase(s, LIST); return CALL_MORE;
    default: split_set_phase(s, OBJECT); return CALL_MORE;
    }
}

static enum call_step step_list(struct chat_split *s, bool at_end)
{
    enum call_step step = split_json_list(s, at_end);

    if (step == CALL_DONE)
        split_set_phase(s, CLOSE);
    return step == CALL_DONE ? CALL_MORE : step;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    for (;;) {
        int before = split_phase(s);
        enum call_step step = CALL_MORE;

        switch (before) {
        case FIRST: step = step_first(s, at_end); break;
        case LIST: step = step_list(s, at_end); break;
        case ROW: step_row(s); break;
        case OBJECT: step = step_object(s, at_end); break;
        default: return split_close(s, "</tool_calls>", at_end);
        }
        if (step != CALL_MORE || split_phase(s) == before)
            return step;
    }
}

const struct chat_dialect chat_dialect_apriel = {
    .name = "apriel",
    .rank = 45,
    .detect = detect,
    .opens = opens,
    .drops = drops,
    .marks = marks,
    .call = call,
};
