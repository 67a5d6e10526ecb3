/* Functionary 3.1: <function=NAME>{...}</function> */
#include <string.h>

#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<function=", NULL};
static const char *const marks[] = {"</function>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "'<function='") &&
           view_has(template_text, "<|start_header_id|>");
}

enum { NAME, ARGUMENTS, CLOSE };

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    static const char *const name_end[] = {">", NULL};
    enum call_step step;

    if (split_phase(s) == NAME) {
        size_t safe;
        ptrdiff_t at = split_find(s, name_end, &which, &safe);
        struct view name = view_sub(split_held(s), 0, at < 0 ? safe : (size_t)at);

        if (memchr(name.p, '\n', name.len))
            return CALL_BAD;
        if (at < 0)
            return CALL_MORE;
        split_begin_call(s, name);
        split_consume(s, (size_t)at + 1);
        split_set_phase(s, ARGUMENTS);
    }
    if (split_phase(s) == ARGUMENTS) {
        step = split_json_arguments(s, at_end);
        if (step != CALL_DONE)
            return step;
        split_set_phase(s, CLOSE);
    }
    return split_close(s, "</function>", at_end);
}

const struct chat_dialect chat_dialect_functionary = {
    .name = "functionary",
    .rank = 35,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
