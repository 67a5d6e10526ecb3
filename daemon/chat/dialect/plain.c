/* Models without tool calls: text, and reasoning in its tags. */
#include "daemon/chat/dialect.h"

static bool detect(struct view template_text)
{
    (void)template_text;
    return true;
}

const struct chat_dialect chat_dialect_plain = {.name = "plain", .rank = 100, .detect = detect};
