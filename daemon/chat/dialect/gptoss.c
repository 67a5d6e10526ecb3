/*
 * gpt-oss (Harmony): the answer is a row of messages,
 * <|channel|>NAME to=functions.TOOL <|constrain|>json<|message|>BODY<|end|><|start|>assistant ...
 * analysis is reasoning, a message to a function is a call, all else content.
 */
#include <string.h>

#include "daemon/chat/dialect.h"

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|channel|>") && view_has(template_text, "<|message|>");
}

enum { FIRST, HEADER, CONTENT, REASONING, CALL };

/* The tool that a header is for, or nothing. */
static struct view addressee(struct view header)
{
    static const struct view to = {"to=functions.", 13};
    ptrdiff_t at = view_find(header, to, 0);
    size_t n = 0;
    struct view name;

    if (at < 0)
        return (struct view){"", 0};
    name = view_sub(header, (size_t)at + to.len, header.len);
    while (n < name.len && name.p[n] != ' ' && name.p[n] != '<' && name.p[n] != '\n')
        n++;
    return view_sub(name, 0, n);
}

/* The prompt ends with the role, so an answer begins with a channel or an addressee; else it has no header. */
static bool step_first(struct chat_split *s, bool at_end)
{
    static const char *const begins[] = {"<|channel|>", "<|start|>", " to=", NULL};
    int is = split_begins(s, begins, at_end);

    if (is != 0)
        split_set_phase(s, is > 0 ? HEADER : CONTENT);
    return is != 0;
}

static bool step_header(struct chat_split *s, bool at_end)
{
    struct view header, name;
    int is = split_header(s, "<|message|>", at_end, &header);

    if (is < 0)
        split_set_phase(s, CONTENT);
    if (is <= 0)
        return is < 0;
    name = addressee(header);
    if (name.len && split_tools(s)) {
        split_begin_call(s, name);
        split_set_phase(s, CALL);
    } else {
        split_set_phase(s, view_has(header, "analysis") ? REASONING : CONTENT);
    }
    return true;
}

static void give(struct chat_split *s, struct view text)
{
    switch (split_phase(s)) {
    case REASONING: split_reasoning(s, text); break;
    case CALL: split_arguments(s, text); break;
    default: split_content(s, text); break;
    }
}

static bool step(struct chat_split *s, bool at_end)
{
    static const char *const ends[] = {"<|end|>",   "<|call|>",    "<|return|>",
                                       "<|start|>", "<|channel|>", NULL};
    size_t which, safe;
    ptrdiff_t at;
    struct view held;

    if (split_phase(s) == FIRST)
        return step_first(s, at_end);
    if (split_phase(s) == HEADER)
        return step_header(s, at_end);
    at = split_find(s, ends, &which, &safe);
    held = split_held(s);
    give(s, view_sub(held, 0, at < 0 && at_end ? held.len : safe));
    split_consume(s, at < 0 && at_end ? held.len : safe);
    if (at < 0)
        return false;
    /* A new channel begins its header with its own marker. */
    split_consume(s, which == 4 ? 0 : strlen(ends[which]));
    if (split_phase(s) == CALL)
        split_end_call(s);
    if (split_phase(s) == REASONING)
        split_end_reasoning(s);
    split_set_phase(s, HEADER);
    return true;
}

const struct chat_dialect chat_dialect_gptoss = {
    .name = "gptoss",
    .rank = 10,
    .detect = detect,
    .special = true,
    .step = step,
};
