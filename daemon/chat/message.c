/* OpenAI's messages as a template wants them.  See chat_priv.h. */
#include <stdio.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/chat/chat_priv.h"

static int wrong(struct err *err, size_t i, const char *what)
{
    char name[48];

    snprintf(name, sizeof name, "messages[%zu]", i);
    return err_set_param(err, ERR_INVALID, name, "%s %s", name, what);
}

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

/* -- content ------------------------------------------------------------- */

/* The text of one part, borrowed. */
static int part_text(const json_t *part, size_t i, const json_t **ret_text, struct err *err)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text;

    if (!type)
        return wrong(err, i, "has a content part without a type; use {\"type\": \"text\", ...}");
    if (strcmp(type, "text") != 0 && strcmp(type, "refusal") != 0)
        return err_set_param(err, ERR_UNPROCESSABLE, "messages",
                             "messages[%zu] has a content part of type '%s'; only text is "
                             "supported",
                             i, type);
    text = json_object_get(part, type);
    if (!json_is_string(text))
        return wrong(err, i, "has a text part whose text is no string");
    *ret_text = text;
    return 0;
}

/* Parts become one string, a line each. */
static int join_parts(const json_t *parts, size_t i, json_t **ret_content, struct err *err)
{
    struct str joined = {0};
    const json_t *text = NULL;
    json_t *part;
    size_t k;
    int r = 0;

    json_array_foreach(parts, k, part)
    {
        r = part_text(part, i, &text, err);
        if (r < 0)
            goto out;
        if (k)
            str_addc(&joined, '\n');
        str_add(&joined, json_string_value(text), json_string_length(text));
    }
    *ret_content = json_stringn(str_text(&joined), joined.len);
out:
    str_clear(&joined);
    return r;
}

static json_t *text_part(json_t *take_text)
{
    return json_pack("{s:s, s:o}", "type", "text", "text", take_text);
}

/* The same parts, each with its type and text alone. */
static int copy_parts(const json_t *parts, size_t i, json_t **ret_content, struct err *err)
{
    json_t *list = json_array();
    const json_t *text = NULL;
    json_t *part;
    size_t k;
    int r;

    json_array_foreach(parts, k, part)
    {
        r = part_text(part, i, &text, err);
        if (r < 0) {
            json_decref(list);
            return r;
        }
        json_array_append_new(list, text_part(json_copy((json_t *)(uintptr_t)text)));
    }
    *ret_content = list;
    return 0;
}

static int set_content(const struct chat_template *t, json_t *m, bool has_calls, size_t i,
                       struct err *err)
{
    const json_t *content = json_object_get(m, "content");
    json_t *set = NULL;
    int r;

    if (is_absent(content)) {
        set = has_calls && t->can.null_content ? json_null() : json_string("");
    } else if (json_is_string(content)) {
        set = json_copy((json_t *)(uintptr_t)content);
    } else if (json_is_array(content)) {
        r = t->can.parts ? copy_parts(content, i, &set, err) : join_parts(content, i, &set, err);
        if (r < 0)
            return r;
    } else {
        return wrong(err, i, "has a content that is neither text nor an array of parts");
    }
    if (json_is_string(set) && !t->can.text_content)
        set = json_pack("[o]", text_part(set));
    json_object_set_new(m, "content", set);
    return 0;
}

/* -- tool calls ---------------------------------------------------------- */

static int set_arguments(const struct chat_template *t, json_t *function, size_t i, struct err *err)
{
    json_t *arguments = json_object_get(function, "arguments");
    struct str text = {0};
    json_t *object = NULL;
    struct err inner = {0};

    if (is_absent(arguments)) {
        object = json_object();
    } else if (json_is_object(arguments)) {
        object = json_incref(arguments);
    } else if (json_is_string(arguments)) {
        const char *p = json_string_value(arguments);

        /* Some clients send "" for a call without arguments. */
        if (p[strspn(p, " \t\r\n")] == '\0')
            object = json_object();
        else if (json_parse(p, json_string_length(arguments), &object, &inner) < 0)
            return err_set_param(err, ERR_INVALID, "messages",
                                 "messages[%zu] has a tool call whose arguments are no JSON: %s", i,
                                 inner.text);
    }
    if (!json_is_object(object)) {
        json_decref(object);
        return wrong(err, i, "has a tool call whose arguments are no JSON object");
    }
    /* Text as the model wrote it is best left alone: its tokens are known. */
    if (t->can.object_arguments && !(json_is_string(arguments) && t->can.text_arguments)) {
        json_object_set_new(function, "arguments", object);
        return 0;
    }
    if (!json_is_string(arguments)) {
        json_dump_to(object, &text);
        json_object_set_new(function, "arguments", json_stringn(str_text(&text), text.len));
        str_clear(&text);
    }
    json_decref(object);
    return 0;
}

static int set_calls(const struct chat_template *t, json_t *m, size_t i, struct err *err)
{
    json_t *calls = json_object_get(m, "tool_calls");
    json_t *call;
    size_t k;
    int r;

    if (!json_is_array(calls))
        return wrong(err, i, "has tool_calls that are no array");
    if (json_array_size(calls) && !t->can.tool_calls)
        return err_set_param(err, ERR_UNPROCESSABLE, "messages",
                             "messages[%zu] has tool calls, and the chat template of this model "
                             "has no place for them",
                             i);
    json_array_foreach(calls, k, call)
    {
        json_t *function = json_object_get(call, "function");

        if (!json_is_object(call) || !json_is_string(json_object_get(function, "name")))
            return wrong(err, i, "has a tool call without function.name");
        if (!json_object_get(call, "type"))
            json_object_set_new(call, "type", json_string("function"));
        r = set_arguments(t, function, i, err);
        if (r < 0)
            return r;
    }
    if (json_array_size(calls) == 0)
        json_object_del(m, "tool_calls");
    return 0;
}

/* -- the whole message --------------------------------------------------- */

static int set_role(const struct chat_template *t, json_t *m, size_t i, struct err *err)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    const char *role = json_string_value(json_object_get(m, "role"));
    size_t k = 0;

    while (k < ARRAY_LEN(roles) && role && strcmp(role, roles[k]) != 0)
        k++;
    if (!role || k == ARRAY_LEN(roles))
        return wrong(err, i, "has an unknown role; use system, developer, user, assistant or tool");
    if (k <= 1 && !t->can.system)
        return err_set_param(err, ERR_UNPROCESSABLE, "messages",
                             "messages[%zu] has the role '%s', and the chat template of this model "
                             "has none; put its text into the first user message",
                             i, role);
    if (k == 1 && !t->can.developer)
        json_object_set_new(m, "role", json_string("system"));
    if (k == 4 && !t->can.tool_results)
        return err_set_param(err, ERR_UNPROCESSABLE, "messages",
                             "messages[%zu] has the role 'tool', and the chat template of this "
                             "model has no place for it",
                             i);
    return 0;
}

/* What was thought before has several names in the wild; a template reads one or two of them. */
static void set_reasoning(const struct chat_template *t, json_t *m)
{
    static const char *const names[] = {"reasoning_content", "reasoning", "thinking", "thought"};
    const bool first = view_has(view_of_str(&t->text), names[0]);
    json_t *text = NULL;

    for (size_t k = 0; k < ARRAY_LEN(names) && !text; k++)
        if (json_is_string(json_object_get(m, names[k])))
            text = json_incref(json_object_get(m, names[k]));
    for (size_t k = 0; k < ARRAY_LEN(names); k++)
        json_object_del(m, names[k]);
    if (!text)
        return;
    json_object_set(m, names[0], text);
    for (size_t k = 1; k < ARRAY_LEN(names) && !first; k++)
        json_object_set(m, names[k], text);
    if (strcmp(t->dialect->name, "gptoss") == 0)
        json_object_set(m, "thinking", text);
    json_decref(text);
}

static int normalise_one(const struct chat_template *t, json_t *m, size_t i, struct err *err)
{
    const json_t *calls;
    bool has_calls;
    int r;

    if (!json_is_object(m))
        return wrong(err, i, "is no object");
    r = set_role(t, m, i, err);
    if (r < 0)
        return r;
    calls = json_object_get(m, "tool_calls");
    if (is_absent(calls))
        json_object_del(m, "tool_calls");
    else if ((r = set_calls(t, m, i, err)) < 0)
        return r;
    has_calls = json_object_get(m, "tool_calls") != NULL;
    set_reasoning(t, m);
    return set_content(t, m, has_calls, i, err);
}

int chat_normalise(const struct chat_template *t, const json_t *messages, json_t **ret_messages,
                   struct err *err)
{
    json_t *copy = NULL;
    json_t *m;
    size_t i;
    int r = 0;

    if (!json_is_array(messages) || json_array_size(messages) == 0)
        return err_set_param(err, ERR_INVALID, "messages",
                             "messages must be an array of at least one message");
    copy = json_deep_copy(messages);
    json_array_foreach(copy, i, m)
    {
        r = normalise_one(t, m, i, err);
        if (r < 0)
            goto out;
    }
    *ret_messages = copy;
    copy = NULL;
out:
    json_decref(copy);
    return r;
}
