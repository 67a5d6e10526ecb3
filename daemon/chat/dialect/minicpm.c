/* MiniCPM 5: <function name="NAME"><param name="KEY">VALUE</param></function> */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<function name=\"", NULL};
static const char *const marks[] = {"<param name=", "</param>", "</function>", NULL};

static const struct tag_syntax syntax = {
    .name_close = "\">",
    .key_open = "<param name=\"",
    .key_close = "\">",
    .value_close = "</param>",
    .call_close = "</function>",
};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<function name=\"") &&
           view_has(template_text, "<param name=\"");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    return split_tag_call(s, &syntax, at_end);
}

const struct chat_dialect chat_dialect_minicpm = {
    .name = "minicpm",
    .rank = 30,
    .detect = detect,
    .opens = opens,
    .marks = marks,
    .call = call,
};
