/*
 * What a template can take, found by rendering small conversations with words
 * in them that must come out again.  See chat_priv.h.
 */
#include <string.h>

#include "common/alloc.h"
#include "daemon/chat/chat_priv.h"

#define W_SYSTEM "qzsystemzq"
#define W_USER   "qzuserzq"
#define W_TOOL   "qztoolzq"
#define W_KEY    "qzkeyzq"
#define W_VALUE  "qzvaluezq"
#define W_RESULT "qzresultzq"

/* Probes are a few words: what a template makes of them does not grow with anything. */
static const struct template_limits limits = {.memory_bytes = (size_t)4 << 20,
                                              .output_bytes = (size_t)1 << 20};

/* Renders the messages (consumed); false when the template fails. */
static bool probe(const struct chat_template *t, json_t *take_messages, const json_t *tools,
                  struct template_output *ret_out)
{
    struct chat_options options = {.add_generation_prompt = true, .bos_token = "", .eos_token = ""};
    int r;

    options.limits = &limits;
    options.now = (struct tm){.tm_mday = 1, .tm_year = 100};
    r = chat_render_raw(t, take_messages, tools, &options, ret_out, NULL);
    json_decref(take_messages);
    return r == 0;
}

/* Whether all words come out. */
static bool shows(const struct chat_template *t, json_t *take_messages, const json_t *tools,
                  const char *const *words)
{
    struct template_output out = {0};
    bool all = probe(t, take_messages, tools, &out);

    for (; all && *words; words++)
        all = view_has(view_of_str(&out.text), *words);
    template_output_clear(&out);
    return all;
}

static json_t *content(const struct chat_template *t, const char *text)
{
    return t->can.text_content ? json_string(text)
                               : json_pack("[{s:s, s:s}]", "type", "text", "text", text);
}

static json_t *message(const struct chat_template *t, const char *role, const char *text)
{
    return json_pack("{s:s, s:o}", "role", role, "content", content(t, text));
}

static bool shows_user(const struct chat_template *t)
{
    static const char *const words[] = {W_USER, NULL};

    return shows(t, json_pack("[o]", message(t, "user", W_USER)), NULL, words);
}

static bool shows_system(const struct chat_template *t)
{
    static const char *const words[] = {W_SYSTEM, W_USER, NULL};

    return shows(t, json_pack("[o, o]", message(t, "system", W_SYSTEM), message(t, "user", W_USER)),
                 NULL, words);
}

/* Some templates show the tools only with a system message. */
static bool shows_tools(const struct chat_template *t, const json_t *tools)
{
    static const char *const words[] = {W_TOOL, NULL};

    return shows(t, json_pack("[o]", message(t, "user", W_USER)), tools, words) ||
           shows(t, json_pack("[o, o]", message(t, "system", W_SYSTEM), message(t, "user", W_USER)),
                 tools, words);
}

static json_t *probe_tools(void)
{
    return json_pack("[{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s, s:s}}, s:[s]}}}]", "type", "function",
                     "function", "name", W_TOOL, "description", "d", "parameters", "type", "object",
                     "properties", W_KEY, "type", "string", "description", "d", "required", W_KEY);
}

static json_t *probe_call(const struct chat_template *t, bool object, bool null)
{
    json_t *arguments = object ? json_pack("{s:s}", W_KEY, W_VALUE)
                               : json_string("{\"" W_KEY "\": \"" W_VALUE "\"}");

    return json_pack("{s:s, s:o, s:[{s:s, s:s, s:{s:s, s:o}}]}", "role", "assistant", "content",
                     null ? json_null() : content(t, ""), "tool_calls", "id", "123456789", "type",
                     "function", "function", "name", W_TOOL, "arguments", arguments);
}

/* user, assistant's call, and the tool's answer when with_result. */
static json_t *probe_talk(const struct chat_template *t, bool object, bool null, bool with_result)
{
    json_t *talk = json_pack("[o, o]", message(t, "user", W_USER), probe_call(t, object, null));

    if (with_result)
        json_array_append_new(talk, json_pack("{s:s, s:s, s:s, s:o}", "role", "tool",
                                              "tool_call_id", "123456789", "name", W_TOOL,
                                              "content", content(t, W_RESULT)));
    return talk;
}

/*
 * Arguments as an object first: that is what templates are written for where
 * both work.  A call is followed by its result in most conversations, and some
 * templates leave out a call that is not.
 */
static void probe_calls(struct chat_template *t, const json_t *tools)
{
    static const char *const call[] = {W_TOOL, W_KEY, W_VALUE, NULL};
    static const char *const both[] = {W_TOOL, W_KEY, W_VALUE, W_RESULT, NULL};
    static const char *const result[] = {W_RESULT, NULL};

    t->can.object_arguments = t->can.null_content = true;
    for (int way = 0; way < 8; way++) {
        bool with_result = way < 4, object = way % 4 < 2, null = way % 2 == 0;

        if (!shows(t, probe_talk(t, object, null, with_result), tools, with_result ? both : call))
            continue;
        t->can.tool_calls = true;
        t->can.object_arguments = object;
        t->can.null_content = null;
        break;
    }
    t->can.tool_results =
        shows(t, probe_talk(t, t->can.object_arguments, t->can.null_content, true), tools, result);
}

/* Text does as well where it gives what the object gives: the probe's JSON is written as tojson writes it. */
static void probe_text_arguments(struct chat_template *t, const json_t *tools)
{
    struct template_output object = {0}, text = {0};
    bool null = t->can.null_content;

    if (!t->can.object_arguments) {
        t->can.text_arguments = true;
        return;
    }
    t->can.text_arguments = probe(t, probe_talk(t, true, null, true), tools, &object) &&
                            probe(t, probe_talk(t, false, null, true), tools, &text) &&
                            view_eq(view_of_str(&object.text), view_of_str(&text.text));
    template_output_clear(&object);
    template_output_clear(&text);
}

/* False when no way of saying one sentence works. */
static bool probe_user(struct chat_template *t)
{
    for (int way = 0; way < 4; way++) {
        t->can.none_tools = way % 2 == 0;
        t->can.text_content = way < 2;
        if (shows_user(t))
            return true;
    }
    return false;
}

/* A template that knows no parts may write the list as Python shows it: then its keys show. */
static bool takes_parts(const struct chat_template *t)
{
    json_t *parts = json_pack("[{s:s, s:s}, {s:s, s:s}]", "type", "text", "text", W_USER, "type",
                              "text", "text", W_VALUE);
    json_t *talk = json_pack("[{s:s, s:o}]", "role", "user", "content", parts);
    struct template_output out = {0};
    struct view text;
    bool is = probe(t, talk, NULL, &out);

    text = view_of_str(&out.text);
    is = is && view_has(text, W_USER) && view_has(text, W_VALUE) && !view_has(text, "'type'") &&
         !view_has(text, "\"type\"");
    template_output_clear(&out);
    return is;
}

void chat_probe(struct chat_template *t)
{
    json_t *tools;

    /* A template that needs variables of its own: what it cannot do, its own errors will say. */
    if (!probe_user(t)) {
        t->can = (struct chat_abilities){.system = true,
                                         .text_content = true,
                                         .none_tools = true,
                                         .tools = true,
                                         .tool_calls = true,
                                         .tool_results = true,
                                         .object_arguments = true,
                                         .null_content = true};
        return;
    }
    tools = probe_tools();
    t->can.parts = takes_parts(t);
    t->can.system = shows_system(t);
    t->can.developer = view_has(view_of_str(&t->text), "developer");
    t->can.tools = shows_tools(t, tools);
    probe_calls(t, tools);
    probe_text_arguments(t, tools);
    json_decref(tools);
}
