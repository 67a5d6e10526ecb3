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

enum { BEGIN, NAME, ARGUMENTS, END };

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
    int end, begin;

    split_skip_space(s);
    end = split_accept(s, "<|tool_calls_section_end|>", at_end);
    if (end > 0)
        return CALL_DONE;
    begin = split_accept(s, "<|tool_call_begin|>", at_end);
    if (begin > 0) {
        split_again(s);
        split_set_phase(s, NAME);
        return CALL_MORE;
    }
    return end == 0 || begin == 0 ? CALL_MORE : CALL_BAD;
}

static void step_name(struct chat_split *s)
{
    static const char *const ends[] = {ARGUMENTS_BEGIN, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, ends, &which, &safe);

    if (at < 0)
        return;
    split_skip_space(s);
    at = split_find(s, ends, &which, &safe);
    split_begin_call(s, name_of(view_sub(split_held(s), 0, (size_t)at)));
    split_consume(s, (size_t)at + strlen(ARGUMENTS_BEGIN));
    split_set_phase(s, ARGUMENTS);
}

static enum call_step step_arguments(struct chat_split *s, bool at_end)
{
    enum call_step step = split_json_arguments(s, at_end);

    if (step != CALL_DONE)
        return step;
    split_end_call(s);
    split_set_phase(s, END);
    return CALL_MORE;
}

static enum call_step step_end(struct chat_split *s, bool at_end)
{
    int end;

    split_skip_space(s);
    end = split_accept(s, "<|tool_call_end|>", at_end);
    if (end > 0)
        split_set_phase(s, BEGIN);
    return end < 0 ? CALL_BAD : CALL_MORE;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    for (;;) {
        int before = split_phase(s);
        enum call_step step = CALL_MORE;

        switch (before) {
        case BEGIN: step = step_begin(s, at_end); break;
        case NAME: step_name(s); break;
        case ARGUMENTS: step = step_arguments(s, at_end); break;
        default: step = step_end(s, at_end); break;
        }
        if (step != CALL_MORE || split_phase(s) == before)
            return step;
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
