/* Apertus: <|tools_prefix|>[{"NAME": {...}}, ...]<|tools_suffix|> */
#include <string.h>

#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<|tools_prefix|>", NULL};
static const char *const drops[] = {"<|inner_suffix|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|tools_prefix|>");
}

enum { LIST, OBJECT, NAME, ARGUMENTS, BRACE, NEXT, SUFFIX };

/* The marker that a phase waits for; the phase after it. */
static enum call_step step_marker(struct chat_split *s, const char *marker, int next, bool at_end)
{
    int is;

    split_skip_space(s);
    is = split_accept(s, marker, at_end);
    if (is > 0)
        split_set_phase(s, next);
    return is < 0 ? CALL_BAD : CALL_MORE;
}

/* After "{": the name in quotes, and its colon. */
static enum call_step step_name(struct chat_split *s)
{
    static const char *const colon[] = {"\":", NULL};
    size_t which, safe;
    struct view held;
    ptrdiff_t at;

    split_skip_space(s);
    held = split_held(s);
    if (held.len && held.p[0] != '"')
        return CALL_BAD;
    at = split_find(s, colon, &which, &safe);
    if (at < 0)
        return CALL_MORE;
    if (at <= 1) /* no name */
        return CALL_BAD;
    split_begin_call(s, view_sub(held, 1, (size_t)at - 1));
    split_consume(s, (size_t)at + strlen(colon[0]));
    split_set_phase(s, ARGUMENTS);
    return CALL_MORE;
}

static enum call_step step_next(struct chat_split *s, bool at_end)
{
    split_skip_space(s);
    if (split_accept(s, ",", at_end) > 0) {
        split_again(s);
        split_set_phase(s, OBJECT);
        return CALL_MORE;
    }
    return step_marker(s, "]", SUFFIX, at_end);
}

static enum call_step step_arguments(struct chat_split *s, bool at_end)
{
    enum call_step step = split_json_arguments(s, at_end);

    if (step != CALL_DONE)
        return step;
    split_end_call(s);
    split_set_phase(s, BRACE);
    return CALL_MORE;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    for (;;) {
        int before = split_phase(s);
        enum call_step step;

        switch (before) {
        case LIST: step = step_marker(s, "[", OBJECT, at_end); break;
        case OBJECT: step = step_marker(s, "{", NAME, at_end); break;
        case NAME: step = step_name(s); break;
        case ARGUMENTS: step = step_arguments(s, at_end); break;
        case BRACE: step = step_marker(s, "}", NEXT, at_end); break;
        case NEXT: step = step_next(s, at_end); break;
        default: return split_close(s, "<|tools_suffix|>", at_end);
        }
        if (step != CALL_MORE || split_phase(s) == before)
            return step;
    }
}

const struct chat_dialect chat_dialect_apertus = {
    .name = "apertus",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .drops = drops,
    .special = true,
    .call = call,
};
