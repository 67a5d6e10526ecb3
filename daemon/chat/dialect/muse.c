/*
 * Muse Glimmer: the answer is a row of messages, <|start|>assistant to=RECIPIENT<|message|>BODY<|eom|>.  To "self"
 * is reasoning, to a tool <atem:function_calls> with the call, all else content.
 */
#include <string.h>

#include "daemon/chat/dialect.h"

#define MESSAGE "<|message|>"

static const struct tag_syntax syntax = {
    .call_open = "<atem:invoke name=\"",
    .name_close = "\">",
    .key_open = "<atem:parameter name=\"",
    .key_close = "\">",
    .value_close = "</atem:parameter>",
    .call_close = "</atem:invoke>",
    .block_close = "</atem:function_calls>",
};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<atem:function_calls>");
}

enum { FIRST, HEADER, CONTENT, REASONING, CALLS };

/* The prompt ends with the role: an answer begins with a recipient or its message; else it has no header. */
static bool step_first(struct chat_split *s, bool at_end)
{
    static const char *const begins[] = {" to=", MESSAGE, "<|start|>", NULL};
    int is = split_begins(s, begins, at_end);

    if (is != 0)
        split_set_part(s, is > 0 ? HEADER : CONTENT);
    return is != 0;
}

static bool step_header(struct chat_split *s, bool at_end)
{
    struct view header;
    int is = split_header(s, MESSAGE, at_end, &header);

    if (is != 0)
        split_set_part(s, is > 0 && view_has(header, "to=self") ? REASONING : CONTENT);
    return is != 0;
}

/* Up to the end of the message, or to calls in it. */
static bool step_body(struct chat_split *s, bool at_end)
{
    static const char *const ends[] = {"<|eom|>", "<|eot|>", "<|start|>", "<atem:function_calls>",
                                       NULL};
    static const char *const no_calls[] = {"<|eom|>", "<|eot|>", "<|start|>", NULL};
    bool reasons = split_part(s) == REASONING;
    bool calls = split_tools(s) && !reasons;
    size_t which, safe;
    ptrdiff_t at = split_find(s, calls ? ends : no_calls, &which, &safe);
    struct view held = split_held(s), text;

    text = view_sub(held, 0, at < 0 && at_end ? held.len : safe);
    if (reasons)
        split_reasoning(s, text);
    else
        split_content(s, text);
    split_consume(s, text.len);
    if (at < 0)
        return false;
    split_consume(s, strlen(ends[which]));
    if (which == 3) {
        split_again(s);
        split_set_part(s, CALLS);
        return true;
    }
    if (reasons)
        split_end_reasoning(s);
    split_set_part(s, HEADER);
    return true;
}

static bool step_calls(struct chat_split *s, bool at_end)
{
    enum call_step step = split_tag_call(s, &syntax, at_end);

    if (step == CALL_MORE)
        return false;
    split_end_call(s);
    split_set_part(s, CONTENT);
    return true;
}

static bool step(struct chat_split *s, bool at_end)
{
    switch (split_part(s)) {
    case FIRST: return step_first(s, at_end);
    case HEADER: return step_header(s, at_end);
    case CALLS: return step_calls(s, at_end);
    default: return step_body(s, at_end);
    }
}

const struct chat_dialect chat_dialect_muse = {
    .name = "muse",
    .rank = 10,
    .detect = detect,
    .special = true,
    .step = step,
};
