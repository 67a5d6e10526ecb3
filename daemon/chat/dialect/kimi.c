/*
 * Kimi K2: <|tool_calls_section_begin|> then, for each call,
 * <|tool_call_begin|>functions.NAME:0<|tool_call_argument_begin|>{...}<|tool_call_end|>,
 * then <|tool_calls_section_end|>.
 */
#include <string.h>

#include "daemon/chat/dialect.h"

#define ARGUMENTS_BEGIN "<|tool_call_argument_begin|>"

static const char *const opens[] = {"<|tool_calls_section_begin|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, ARGUMENTS_BEGIN);
}

enum { BEGIN, NAME, ARGUMENTS };

/* "functions.NAME:0" → NAME */
static struct view name_of(struct view id)
{
    static const struct view prefix = {"functions.", 10};
    ptrdiff_t number = view_find(id, VIEW(":"), 0);

    if (number >= 0)
        id.len = (size_t)number;
    return view_starts(id, prefix) ? view_sub(id, prefix.len, id.len) : id;
}

static enum call_step step_begin(struct chat_split *s, bool at_end)
{
    int is;

    split_skip_space(s);
    is = split_accept(s, "<|tool_calls_section_end|>", at_end);
    if (is > 0)
        return CALL_DONE;
    if (split_accept(s, "<|tool_call_begin|>", at_end) > 0) {
        split_again(s);
        split_set_phase(s, NAME);
        return CALL_MORE;
    }
    return is == 0 ? CALL_MORE : CALL_BAD;
}

static bool step_name(struct chat_split *s)
{
    static const char *const ends[] = {ARGUMENTS_BEGIN, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, ends, &which, &safe);

    if (at < 0)
        return false;
    split_skip_space(s);
    at = split_find(s, ends, &which, &safe);
    split_begin_call(s, name_of(view_sub(split_held(s), 0, (size_t)at)));
    split_consume(s, (size_t)at + strlen(ARGUMENTS_BEGIN));
    split_set_phase(s, ARGUMENTS);
    return true;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    for (;;) {
        int before = split_phase(s);
        enum call_step step = CALL_MORE;

        if (before == BEGIN) {
            step = step_begin(s, at_end);
            if (step != CALL_MORE || split_phase(s) == BEGIN)
                return step;
        } else if (before == NAME) {
            if (!step_name(s))
                return CALL_MORE;
        } else {
            step = split_json_arguments(s, at_end);
            if (step != CALL_DONE)
                return step;
            split_end_call(s);
            split_skip_space(s);
            split_set_phase(s, ARGUMENTS + 1);
        }
        if (split_phase(s) == ARGUMENTS + 1) {
            int end = split_accept(s, "<|tool_call_end|>", at_end);

            if (end == 0)
                return CALL_MORE;
            if (end < 0)
                return CALL_BAD;
            split_set_phase(s, BEGIN);
        }
    }
}

const struct chat_dialect chat_dialect_kimi = {
    .name = "kimi",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
