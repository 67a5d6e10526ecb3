/* See chat_helper.h. */
#include "tests/unit/chat/chat_helper.h"

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"

#define LOOP "{% for m in messages %}"
#define CALLS                                                                                      \
    "{% for c in m.tool_calls or [] %}"                                                            \
    "{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}{% endfor %}"
#define TOOLS "{% if tools %}{{ tools | tojson }}{% endif %}"

const char *const template_hermes = TOOLS LOOP
    "<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}\n"
    "<tool_call>\n{{ {'name': c.function.name, 'arguments': c.function.arguments} | tojson }}"
    "\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";
const char *const template_gemma =
    "{% if messages[0].role == 'system' %}{{ raise_exception('System role not supported') }}{% "
    "endif %}" LOOP
    "{% if m.role in ['user', 'assistant'] %}<turn>{{ m.role }}\n{{ m.content }}{% endif %}"
    "{% endfor %}";
const char *const template_llama3 = TOOLS LOOP
    "<|start_header_id|>{{ m.role }}<|end_header_id|>{{ m.content }}" CALLS "{% endfor %}"
    "{# <|python_tag|> #}";
const char *const template_mistral =
    TOOLS LOOP "[INST]{{ m.content }}[/INST]{# [TOOL_CALLS] #}" CALLS "{% endfor %}";
const char *const template_deepseek =
    TOOLS LOOP "<｜User｜>{{ m.content }}{# <｜tool▁calls▁begin｜> <think> #}" CALLS "{% endfor %}";
const char *const template_gptoss = TOOLS LOOP
    "<|start|>{{ m.role }}<|channel|>final<|message|>{{ m.content }}{{ m.thinking }}" CALLS
    "{% endfor %}";
const char *const template_qwen3_coder = TOOLS LOOP
    "{{ m.content }}{# <tool_call><function=x><parameter=y> <think> #}" CALLS "{% endfor %}";
const char *const template_glm =
    TOOLS LOOP "{{ m.content }}{# <tool_call>x<arg_key> #}" CALLS "{% endfor %}";
const char *const template_think =
    TOOLS LOOP "{{ m.role }}: {{ m.content }}{# <think> <tool_call> #}" CALLS "{% endfor %}";
const char *const template_kimi =
    TOOLS LOOP "{{ m.content }}{# <|tool_call_argument_begin|> #}" CALLS "{% endfor %}";
const char *const template_nemotron =
    TOOLS LOOP "{{ m.content }}{# <TOOLCALL> #}" CALLS "{% endfor %}";
const char *const template_dsml =
    TOOLS LOOP "{{ m.content }}{# <｜DSML｜function_calls> #}" CALLS "{% endfor %}";

const char *const template_seed =
    TOOLS LOOP "{{ m.content }}{# <seed:tool_call><function=x><parameter=y> <seed:think> #}" CALLS
               "{% endfor %}";
const char *const template_gemma4 =
    TOOLS LOOP "{{ m.content }}{# <|tool_call>call: <|channel>thought\n #}" CALLS "{% endfor %}";
const char *const template_granite =
    TOOLS LOOP "{{ m.content }}{# <|tool_call|> #}" CALLS "{% endfor %}";
const char *const template_functionary = TOOLS LOOP
    "{{ m.content }}{# '<function=' <|start_header_id|> <|python_tag|> #}" CALLS "{% endfor %}";

const char *const template_command_r =
    TOOLS LOOP "{{ m.content }}{# <|START_ACTION|> <|START_THINKING|> #}" CALLS "{% endfor %}";
const char *const template_lfm2 =
    TOOLS LOOP "{{ m.content }}{# <|tool_call_start|> #}" CALLS "{% endfor %}";
const char *const template_hy3 =
    TOOLS LOOP "{{ m.content }}{# '<think{}>' '<tool_sep{}>' '<arg_key{}>' #}" CALLS "{% endfor %}";
const char *const template_kimi_k3 =
    TOOLS LOOP "{{ m.content }}{# <|open|> <|close|> <|end_of_msg|> #}" CALLS "{% endfor %}";
const char *const template_apertus =
    TOOLS LOOP "{{ m.content }}{# <|tools_prefix|> <|inner_prefix|> #}" CALLS "{% endfor %}";
const char *const template_apriel =
    TOOLS LOOP "{{ m.content }}{# <tool_calls> [BEGIN FINAL RESPONSE] #}" CALLS "{% endfor %}";
const char *const template_functionary_all =
    TOOLS LOOP "{{ m.content }}{# >>>all <|start_header_id|> #}" CALLS "{% endfor %}";
const char *const template_muse =
    TOOLS LOOP "{{ m.content }}{# <atem:function_calls> #}" CALLS "{% endfor %}";
const char *const template_minicpm =
    TOOLS LOOP "{{ m.content }}{# <function name=\" <param name=\" #}" CALLS "{% endfor %}";

static struct chat_template *create(const char *text)
{
    struct chat_template *t = NULL;
    struct err err = {0};

    ck_assert_msg(chat_template_create(text, text ? strlen(text) : 0, &t, &err) == 0, "%s",
                  err.text);
    return t;
}

const char *rendered(const char *template_text, const char *messages_json, const char *tools_json)
{
    static char shown[4096];
    struct chat_template *t = create(template_text);
    struct chat_options o = {.add_generation_prompt = true, .now = {.tm_mday = 1}};
    json_t *messages = json_loads(messages_json, 0, NULL);
    json_t *tools = tools_json ? json_loads(tools_json, 0, NULL) : NULL;
    struct template_output out = {0};
    struct err err = {0};

    ck_assert_ptr_nonnull(messages);
    ck_assert(!tools_json || tools);
    if (chat_render(t, messages, tools, &o, &out, &err) == 0)
        snprintf(shown, sizeof shown, "%s", str_text(&out.text));
    else
        snprintf(shown, sizeof shown, "error: %s", err.text);
    template_output_clear(&out);
    json_decref(messages);
    json_decref(tools);
    chat_template_destroy(t);
    return shown;
}

/* The line is built so that cutting a part in two does not show. */
struct line {
    struct str text;
    enum chat_event_kind last;
    bool any;
};

static void close_part(struct line *l)
{
    if (l->any && l->last != CHAT_CALL_END)
        str_adds(&l->text, l->last == CHAT_CALL || l->last == CHAT_ARGUMENTS ? "" : ") ");
}

static void write_event(void *arg, const struct chat_event *e)
{
    static const char *const begin[] = {"c(", "r("};
    struct line *l = arg;

    switch (e->kind) {
    case CHAT_CONTENT:
    case CHAT_REASONING:
        ck_assert_uint_gt(e->text.len, 0);
        if (!l->any || l->last != e->kind) {
            close_part(l);
            str_adds(&l->text, begin[e->kind]);
        }
        str_add(&l->text, e->text.p, e->text.len);
        break;
    case CHAT_CALL:
        close_part(l);
        str_addf(&l->text, "%s[", e->name);
        break;
    case CHAT_ARGUMENTS: str_add(&l->text, e->text.p, e->text.len); break;
    case CHAT_CALL_END: str_adds(&l->text, "] "); break;
    }
    l->last = e->kind;
    l->any = true;
}

const char *split_in_pieces(const char *template_text, const char *answer, size_t step,
                            const char *prompt, bool with_tools)
{
    static char shown[8192];
    struct chat_template *t = create(template_text);
    json_t *tools = json_loads(
        "[{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {\"type\":"
        " \"object\", \"properties\": {\"city\": {\"type\": \"string\"}, \"n\": {\"type\":"
        " \"integer\"}}}}}]",
        0, NULL);
    struct chat_split_options o = {
        .reasoning = true, .tools = with_tools ? tools : NULL, .prompt = view_of(prompt)};
    struct line line = {0};
    struct chat_split *s = chat_split_create(t, &o, write_event, &line);
    struct view all = view_of(answer);

    for (size_t at = 0; at < all.len; at += step)
        chat_split_feed(s, view_sub(all, at, step));
    chat_split_finish(s);
    close_part(&line);
    snprintf(shown, sizeof shown, "%s", str_text(&line.text));
    if (*shown && shown[strlen(shown) - 1] == ' ')
        shown[strlen(shown) - 1] = '\0';
    str_clear(&line.text);
    chat_split_destroy(s);
    chat_template_destroy(t);
    json_decref(tools);
    return shown;
}

const char *split(const char *template_text, const char *answer)
{
    char *whole = xstrdup(split_in_pieces(template_text, answer, strlen(answer) + 1, "", true));
    const char *pieces = whole;

    for (size_t step = 1; step < 12; step++) {
        pieces = split_in_pieces(template_text, answer, step, "", true);
        ck_assert_msg(strcmp(pieces, whole) == 0, "in pieces of %zu: %s\nwhole: %s", step, pieces,
                      whole);
    }
    free(whole);
    return pieces;
}
