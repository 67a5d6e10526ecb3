/*
 * DeepSeek V3, R1 and V3.1: <｜tool▁calls▁begin｜> then, for each call,
 * <｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME newline ```json newline {...} newline ```<｜tool▁call▁end｜>
 * (V3.1: <｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{...}<｜tool▁call▁end｜>), then <｜tool▁calls▁end｜>.
 */
#include <string.h>

#include "daemon/chat/dialect.h"

#define CALL_BEGIN "<｜tool▁call▁begin｜>"
#define CALL_SEP   "<｜tool▁sep｜>"
#define CALL_END   "<｜tool▁call▁end｜>"
#define BLOCK_END  "<｜tool▁calls▁end｜>"

static const char *const opens[] = {"<｜tool▁calls▁begin｜>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<｜tool▁calls▁begin｜>");
}

enum { BEGIN, KIND, NAME, ARGUMENTS, END };

static enum call_step step_begin(struct chat_split *s, bool at_end)
{
    int end, begin;

    split_skip_space(s);
    end = split_accept(s, BLOCK_END, at_end);
    if (end > 0)
        return CALL_DONE;
    begin = split_accept(s, CALL_BEGIN, at_end);
    if (begin > 0) {
        split_again(s);
        split_set_phase(s, KIND);
        return CALL_MORE;
    }
    return end == 0 || begin == 0 ? CALL_MORE : CALL_BAD;
}

/* Up to the separator: "function", or the name itself. */
static bool step_kind(struct chat_split *s)
{
    static const char *const sep[] = {CALL_SEP, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, sep, &which, &safe);
    struct view kind;

    if (at < 0)
        return false;
    kind = view_sub(split_held(s), 0, (size_t)at);
    if (view_is(kind, "function")) {
        split_set_phase(s, NAME);
    } else {
        split_begin_call(s, kind);
        split_set_phase(s, ARGUMENTS);
    }
    split_consume(s, (size_t)at + strlen(CALL_SEP));
    return true;
}

static bool step_name(struct chat_split *s)
{
    static const char *const ends[] = {"\n", "{", NULL};
    static const char *const object[] = {"{", NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, object, &which, &safe);
    ptrdiff_t line = split_find(s, ends, &which, &safe);

    if (at < 0)
        return false;
    split_begin_call(s, view_sub(split_held(s), 0, (size_t)line));
    split_consume(s, (size_t)at);
    split_set_phase(s, ARGUMENTS);
    return true;
}

static bool step_end(struct chat_split *s)
{
    static const char *const end[] = {CALL_END, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, end, &which, &safe);

    split_consume(s, at < 0 ? safe : (size_t)at + strlen(CALL_END));
    if (at < 0)
        return false;
    split_set_phase(s, BEGIN);
    return true;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    for (;;) {
        enum call_step step;
        bool moved;

        switch (split_phase(s)) {
        case BEGIN:
            step = step_begin(s, at_end);
            moved = split_phase(s) != BEGIN;
            if (step != CALL_MORE)
                return step;
            break;
        case KIND: moved = step_kind(s); break;
        case NAME: moved = step_name(s); break;
        case ARGUMENTS:
            step = split_json_arguments(s, at_end);
            if (step != CALL_DONE)
                return step;
            split_end_call(s);
            split_set_phase(s, END);
            moved = true;
            break;
        default: moved = step_end(s); break;
        }
        if (!moved)
            return CALL_MORE;
    }
}

const struct chat_dialect chat_dialect_deepseek = {
    .name = "deepseek",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
