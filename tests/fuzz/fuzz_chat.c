/* Answers of every dialect: how they are cut into pieces must not change what comes out of them. */
/* room: daemon/chat */
#include <string.h>

#include "common/alloc.h"
#include "common/str.h"
#include "daemon/chat/chat.h"
#include "tests/fuzz/fuzz.h"

/* The marks by which a template is known, in a comment: what it renders is of no interest here. */
static const char *const marks[] = {
    "plain",
    "<think>",
    "<tool_call> <think>",
    "<|start_header_id|> <|python_tag|>",
    "[TOOL_CALLS] [THINK]",
    "<｜tool▁calls▁begin｜> <think>",
    "<|channel|> <|message|>",
    "<tool_call> <function= <parameter=",
    "<tool_call> <arg_key>",
    "minimax:tool_call",
    "<|tool_call_argument_begin|>",
    "<TOOLCALL>",
    "<|function_call|>",
    "｜DSML｜",
    "<function name=\" <param name=\"",
    "<|tool_call>call: <|channel>thought\n",
    "<|tool_call|>",
    "<|START_ACTION|> <|START_THINKING|>",
    "<|tool_call_start|>",
    "'<function=' <|start_header_id|>",
    "'<think{}>' '<tool_sep{}>' '<arg_key{}>'",
    "<|open|> <|close|> <|end_of_msg|>",
    "<|tools_prefix|> <|inner_prefix|>",
    "<tool_calls> [BEGIN FINAL RESPONSE]",
    ">>>all <|start_header_id|>",
    "<atem:function_calls>",
};

static struct chat_template *templates[ARRAY_LEN(marks)];
static json_t *tools;

/* Content, reasoning and calls, each joined: the order of content and reasoning among them is kept by marks. */
struct answer {
    struct str text;
    enum chat_event_kind last;
    unsigned n_calls;
    bool open;
};

static void write_event(void *arg, const struct chat_event *e)
{
    struct answer *a = arg;

    FUZZ_REQUIRE(a->open == (e->kind == CHAT_ARGUMENTS || e->kind == CHAT_CALL_END));
    if (e->kind == CHAT_CALL) {
        FUZZ_REQUIRE(e->call == a->n_calls);
        a->n_calls++;
        str_addf(&a->text, "\1(call %s)\1", e->name);
    } else if (e->kind != CHAT_CALL_END) {
        FUZZ_REQUIRE(e->text.len > 0);
        if (a->text.len == 0 || a->last != e->kind)
            str_addf(&a->text, "\1%d\1", e->kind);
        str_add(&a->text, e->text.p, e->text.len);
    }
    a->open = e->kind == CHAT_CALL || e->kind == CHAT_ARGUMENTS;
    a->last = e->kind;
}

static struct str split(const struct chat_template *t, struct view text, size_t step,
                        bool reasoning, const json_t *offered)
{
    struct chat_split_options o = {.reasoning = reasoning, .tools = offered, .prompt = {"", 0}};
    struct answer a = {.last = CHAT_CALL_END};
    struct chat_split *s = chat_split_create(t, &o, write_event, &a);

    for (size_t at = 0; at < text.len; at += step)
        chat_split_feed(s, view_sub(text, at, step));
    chat_split_finish(s);
    FUZZ_REQUIRE(!a.open && chat_split_n_calls(s) == a.n_calls);
    chat_split_destroy(s);
    return a.text;
}

static void start(void)
{
    for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
        char *text = xasprintf("{{ messages[0].content }}{# %s #}", marks[i]);

        FUZZ_REQUIRE(chat_template_create(text, strlen(text), &templates[i], NULL) == 0);
        free(text);
    }
    tools = json_pack("[{s:{s:s}}]", "function", "name", "f");
}

/* Dialects whose markers are no content wherever they stand. */
static bool rewrites(const char *dialect)
{
    static const char *const names[] = {"gptoss",  "muse",    "functionary_all", "command_r",
                                        "kimi_k3", "apertus", "apriel"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(dialect, names[i]) == 0)
            return true;
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const struct chat_template *t;
    struct str whole, pieces;
    struct view text;

    if (!tools)
        start();
    if (size < 2)
        return 0;
    t = templates[data[0] % ARRAY_LEN(marks)];
    text = (struct view){(const char *)data + 2, size - 2};
    whole = split(t, text, size, true, tools);
    pieces = split(t, text, data[1] % 7 + 1, true, tools);
    FUZZ_REQUIRE(view_eq(view_of_str(&whole), view_of_str(&pieces)));
    str_clear(&whole);
    str_clear(&pieces);
    /* With nothing to look for, what goes in comes out. */
    if (text.len && !rewrites(chat_template_dialect(t))) {
        whole = split(t, text, data[1] % 7 + 1, false, NULL);
        FUZZ_REQUIRE(whole.len == text.len + 3 && memcmp(whole.p + 3, text.p, text.len) == 0);
        str_clear(&whole);
    }
    return 0;
}
