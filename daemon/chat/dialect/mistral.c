/*
 * Mistral: [TOOL_CALLS][{"name": ..., "arguments": {...}}, ...], and since its 2025 models
 * [TOOL_CALLS]NAME[ARGS]{...} or [TOOL_CALLS]NAME{...}, one marker a call.
 */
#include <string.h>

#include "daemon/chat/dialect.h"

static const char *const opens[] = {"[TOOL_CALLS]", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "[TOOL_CALLS]");
}

enum { FIRST, LIST, NAME, BEFORE_ARGUMENTS, ARGUMENTS };

static enum call_step step_name(struct chat_split *s)
{
    static const char *const ends[] = {"[ARGS]", "{", "[CALL_ID]", NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, ends, &which, &safe);
    struct view name;

    if (at < 0)
        return CALL_MORE;
    name = view_sub(split_held(s), 0, (size_t)at);
    if (name.len == 0 || memchr(name.p, '\n', name.len))
        return CALL_BAD;
    split_begin_call(s, name);
    split_consume(s, (size_t)at);
    split_set_phase(s, BEFORE_ARGUMENTS);
    return CALL_DONE;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    static const char *const object[] = {"{", NULL};
    enum call_step step;
    size_t first, safe;
    ptrdiff_t at;

    (void)which;
    if (split_phase(s) == FIRST) {
        split_skip_space(s);
        if (!split_held(s).len)
            return CALL_MORE;
        split_set_phase(s, split_accept(s, "[", at_end) > 0 ? LIST : NAME);
    }
    if (split_phase(s) == LIST)
        return split_json_list(s, at_end);
    if (split_phase(s) == NAME) {
        step = step_name(s);
        if (step != CALL_DONE)
            return step;
    }
    /* An id of the model's own may stand before the arguments: it is not needed. */
    if (split_phase(s) == BEFORE_ARGUMENTS) {
        at = split_find(s, object, &first, &safe);
        split_consume(s, at < 0 ? safe : (size_t)at);
        if (at < 0)
            return CALL_MORE;
        split_set_phase(s, ARGUMENTS);
    }
    return split_json_arguments(s, at_end);
}

const struct chat_dialect chat_dialect_mistral = {
    .name = "mistral",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
