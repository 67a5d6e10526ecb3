/*
 * DeepSeek V3.2 and V4: <｜DSML｜function_calls><｜DSML｜invoke name="NAME">
 * <｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter></｜DSML｜invoke></｜DSML｜function_calls>
 */
#include "daemon/chat/dialect.h"

static const char *const opens[] = {"<｜DSML｜function_calls>", "<｜DSML｜tool_calls>", NULL};

#define SYNTAX(block)                                                                              \
    {                                                                                              \
        .call_open = "<｜DSML｜invoke name=\"", .name_close = "\">",                               \
        .key_open = "<｜DSML｜parameter name=\"", .key_close = "\">",                              \
        .value_close = "</｜DSML｜parameter>", .call_close = "</｜DSML｜invoke>",                  \
        .block_close = "</｜DSML｜" block ">"                                                      \
    }

static const struct tag_syntax syntax[] = {SYNTAX("function_calls"), SYNTAX("tool_calls")};

static bool detect(struct view template_text)
{
    return view_has(template_text, "｜DSML｜");
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    return split_tag_call(s, &syntax[which], at_end);
}

const struct chat_dialect chat_dialect_deepseek_dsml = {
    .name = "deepseek_dsml",
    .rank = 10,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
