/*
 * Functionary 3.2: the answer is a row of messages, each ">>>RECIPIENT" newline BODY; the prompt ends with the
 * first ">>>".  "all" is content, any other recipient a tool whose arguments are the body.
 */
#include <string.h>

#include "daemon/chat/dialect.h"

#define MAX_NAME 128

static bool detect(struct view template_text)
{
    return view_has(template_text, ">>>all") && view_has(template_text, "<|start_header_id|>");
}

enum { HEADER, CONTENT, CALL };

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '.';
}

/* Bytes up to the body: a recipient stood there (*ret_name), 0: more are needed, -1: it is no header. */
static ptrdiff_t read_header(struct view held, bool at_end, struct view *ret_name)
{
    size_t from = view_starts(held, VIEW(">>>")) ? 3 : 0, n = from;

    while (n < held.len && n - from < MAX_NAME && is_name_char(held.p[n]))
        n++;
    *ret_name = view_sub(held, from, n - from);
    if (n < held.len && held.p[n] == '\n' && n > from) {
        /* What code a tool may take is told from arguments by the first byte. */
        bool all = view_is(*ret_name, "all");

        for (n++; !all && n < held.len && (held.p[n] == ' ' || held.p[n] == '\n'); n++)
            ;
        if (all || (n < held.len && held.p[n] == '{'))
            return (ptrdiff_t)n;
        return n < held.len || at_end ? -1 : 0;
    }
    return n < held.len || at_end || n - from == MAX_NAME ? -1 : 0;
}

static bool step_header(struct chat_split *s, bool at_end)
{
    static const char *const next[] = {">>>", NULL};
    struct view held = split_held(s), name;
    ptrdiff_t n;

    if (!held.len)
        return false;
    n = !at_end && held.len < 3 && view_starts(view_of(next[0]), held)
            ? 0
            : read_header(held, at_end, &name);
    if (n == 0)
        return false;
    if (n > 0 && !view_is(name, "all") && split_tools(s)) {
        split_again(s);
        split_begin_call(s, name);
        split_set_part(s, CALL);
    } else {
        split_set_part(s, CONTENT);
        if (n < 0 || !view_is(name, "all")) {
            /* Its own ">>>" would be found again. */
            n = view_starts(held, view_of(next[0])) ? 3 : 0;
            split_content(s, view_sub(held, 0, (size_t)n));
        }
    }
    split_consume(s, (size_t)n);
    return true;
}

static bool step_content(struct chat_split *s, bool at_end)
{
    static const char *const next[] = {">>>", NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, next, &which, &safe);
    struct view held = split_held(s);
    size_t n = at < 0 && at_end ? held.len : safe;

    split_content(s, view_sub(held, 0, n));
    split_consume(s, n);
    if (at >= 0)
        split_set_part(s, HEADER);
    return at >= 0;
}

static bool step(struct chat_split *s, bool at_end)
{
    enum call_step step;

    switch (split_part(s)) {
    case HEADER: return step_header(s, at_end);
    case CONTENT: return step_content(s, at_end);
    default:
        step = split_json_arguments(s, at_end);
        if (step == CALL_MORE)
            return false;
        split_end_call(s);
        split_set_part(s, CONTENT);
        return true;
    }
}

const struct chat_dialect chat_dialect_functionary_all = {
    .name = "functionary_all",
    .rank = 30,
    .detect = detect,
    .step = step,
};
