/* POST /v1/chat/completions: the body to a request; see openai.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/openai/openai_priv.h"

static int refuse_unless(bool neutral, const char *name, const char *why, struct err *err)
{
    return neutral ? 0 : err_set_param(err, ERR_UNPROCESSABLE, name, "'%s' %s", name, why);
}

/* -- messages ----------------------------------------------------------------------------------- */

static int wrong_message(struct err *err, size_t i, const char *field, const char *must_be)
{
    char name[64];

    snprintf(name, sizeof name, "messages[%zu]%s%s", i, *field ? "." : "", field);
    return params_wrong(err, name, must_be);
}

static int check_content(const json_t *content, size_t at, struct err *err)
{
    size_t i;
    json_t *part;

    if (!content || json_is_null(content) || json_is_string(content))
        return 0;
    if (!json_is_array(content))
        return wrong_message(err, at, "content", "a text or an array of parts");
    json_array_foreach(content, i, part)
    {
        const char *type = json_string_value(json_object_get(part, "type"));

        if (!type)
            return wrong_message(err, at, "content", "an array of objects that have a type");
        if (strcmp(type, "text") == 0 || strcmp(type, "refusal") == 0) {
            if (!json_is_string(json_object_get(part, type)))
                return wrong_message(err, at, "content", "parts whose text is a string");
        } else {
            return err_set_param(
                err, ERR_UNPROCESSABLE, "messages",
                "messages[%zu] has a part of type '%s'; this version reads text only", at, type);
        }
    }
    return 0;
}

static int check_tool_calls(const json_t *calls, size_t at, struct err *err)
{
    size_t i;
    json_t *call;

    if (!calls || json_is_null(calls))
        return 0;
    if (!json_is_array(calls))
        return wrong_message(err, at, "tool_calls", "an array");
    json_array_foreach(calls, i, call)
    {
        const json_t *function = json_object_get(call, "function");

        if (!json_is_string(json_object_get(function, "name")) ||
            !json_object_get(function, "arguments"))
            return wrong_message(err, at, "tool_calls",
                                 "calls with function.name and function.arguments");
    }
    return 0;
}

static int check_message(const json_t *m, size_t at, struct err *err)
{
    static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};
    static const char *const known[] = {"role",
                                        "content",
                                        "name",
                                        "tool_calls",
                                        "tool_call_id",
                                        "refusal",
                                        "reasoning_content",
                                        "audio",
                                        "annotations",
                                        "reasoning",
                                        "function_call",
                                        NULL};
    const char *role;
    const json_t *audio, *function;
    char name[32];
    int r;

    if (!json_is_object(m))
        return wrong_message(err, at, "", "an object");
    snprintf(name, sizeof name, "messages[%zu]", at);
    r = params_only_keys(m, name, known, err);
    if (r < 0)
        return r;
    role = json_string_value(json_object_get(m, "role"));
    for (size_t i = 0; role && i < ARRAY_LEN(roles); i++)
        if (strcmp(role, roles[i]) == 0) {
            audio = json_object_get(m, "audio");
            function = json_object_get(m, "function_call");
            if ((audio && !json_is_null(audio)) || (function && !json_is_null(function)))
                return wrong_message(err, at, "", "without audio and function_call");
            r = check_content(json_object_get(m, "content"), at, err);
            return r < 0 ? r : check_tool_calls(json_object_get(m, "tool_calls"), at, err);
        }
    return wrong_message(err, at, "role", "system, developer, user, assistant or tool");
}

static int parse_messages(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    size_t i;
    json_t *m;
    int r;

    if (!json_is_array(value) || json_array_size(value) == 0)
        return params_wrong(err, name, "an array of at least one message");
    json_array_foreach(value, i, m)
    {
        r = check_message(m, i, err);
        if (r < 0)
            return r;
    }
    p->request->messages = json_deep_copy(value);
    return 0;
}

/* -- tools ---------------------------------------------------------------------------------------- */

static int parse_tools(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    size_t i;
    json_t *tool;

    if (!json_is_array(value))
        return params_wrong(err, name, "an array");
    json_array_foreach(value, i, tool)
    {
        const char *type = json_string_value(json_object_get(tool, "type"));
        const json_t *function = json_object_get(tool, "function");
        const json_t *strict = json_object_get(function, "strict");

        if (!type || strcmp(type, "function") != 0 ||
            !json_is_string(json_object_get(function, "name")))
            return params_wrong(
                err, name, "an array of {\"type\": \"function\", \"function\": {\"name\", …}}");
        if (json_is_true(strict))
            return err_set_param(
                err, ERR_UNPROCESSABLE, name,
                "tools[%zu].function.strict cannot be enforced by this version; set it to false",
                i);
    }
    if (json_array_size(value) > 0)
        p->request->tools = json_deep_copy(value);
    return 0;
}

static int parse_tool_choice(struct parse *p, const char *name, const json_t *value,
                             struct err *err)
{
    const char *word = json_string_value(value);

    if (word && strcmp(word, "none") == 0) {
        p->no_tools = true;
        return 0;
    }
    return refuse_unless(
        word && strcmp(word, "auto") == 0, name,
        "can be \"auto\" or \"none\"; a forced call cannot be enforced by this version", err);
}

static int parse_parallel(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    if (!json_is_boolean(value))
        return params_wrong(err, name, "true or false");
    return refuse_unless(json_is_true(value), name,
                         "false cannot be enforced by this version; leave it out", err);
}

/* -- the rest ---------------------------------------------------------------------------------------- */

static int parse_logprobs(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_boolean(value))
        return params_wrong(err, name, "true or false");
    p->request->logprobs = p->reply.logprobs = json_is_true(value);
    return 0;
}

static int parse_top_logprobs(struct parse *p, const char *name, const json_t *value,
                              struct err *err)
{
    if (!json_is_integer(value) || json_integer_value(value) < 0 || json_integer_value(value) > 20)
        return params_wrong(err, name, "a whole number from 0 to 20");
    p->request->n_top_logprobs = (unsigned)json_integer_value(value);
    return 0;
}

static int parse_response_format(struct parse *p, const char *name, const json_t *value,
                                 struct err *err)
{
    const char *type = json_string_value(json_object_get(value, "type"));

    (void)p;
    if (!type)
        return params_wrong(err, name, "an object with a type");
    return refuse_unless(strcmp(type, "text") == 0, name,
                         "of another type than \"text\" cannot be enforced by this version", err);
}

static int parse_kwargs(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_object(value))
        return params_wrong(err, name, "an object");
    if (!p->request->template_kwargs)
        p->request->template_kwargs = json_object();
    json_object_update((json_t *)p->request->template_kwargs, (json_t *)(uintptr_t)value);
    return 0;
}

/* Templates that know an effort read it under this name. */
static int parse_effort(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    if (!json_is_string(value))
        return params_wrong(err, name, "a text such as \"low\", \"medium\" or \"high\"");
    if (!p->request->template_kwargs)
        p->request->template_kwargs = json_object();
    json_object_set((json_t *)p->request->template_kwargs, name, (json_t *)(uintptr_t)value);
    return 0;
}

static int parse_reasoning_format(struct parse *p, const char *name, const json_t *value,
                                  struct err *err)
{
    const char *word = json_string_value(value);

    if (!word || (strcmp(word, "none") && strcmp(word, "auto") && strcmp(word, "deepseek")))
        return params_wrong(err, name, "\"none\", \"auto\" or \"deepseek\"");
    p->request->split_reasoning = strcmp(word, "none") != 0;
    return 0;
}

static int parse_false(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    return refuse_unless(json_is_false(value), name,
                         "cannot be honoured; leave it out or set it to false", err);
}

static int parse_empty_object(struct parse *p, const char *name, const json_t *value,
                              struct err *err)
{
    (void)p;
    return refuse_unless(json_is_object(value) && json_object_size(value) == 0, name,
                         "cannot be honoured; leave it out", err);
}

static int parse_tier(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    const char *word = json_string_value(value);

    (void)p;
    return refuse_unless(word && (strcmp(word, "auto") == 0 || strcmp(word, "default") == 0), name,
                         "can only be \"auto\" or \"default\"", err);
}

static int parse_medium(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    const char *word = json_string_value(value);

    (void)p;
    return refuse_unless(word && strcmp(word, "medium") == 0, name, "can only be \"medium\"", err);
}

static int parse_modalities(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    const char *word = json_string_value(json_array_get(value, 0));

    (void)p;
    return refuse_unless(json_array_size(value) == 1 && word && strcmp(word, "text") == 0, name,
                         "can only be [\"text\"]", err);
}

static int parse_never(struct parse *p, const char *name, const json_t *value, struct err *err)
{
    (void)p;
    (void)value;
    return refuse_unless(false, name, "is not supported; leave it out", err);
}

static const struct field fields[] = {
    {"messages", FACE_CHAT, parse_messages},
    {"tools", FACE_CHAT, parse_tools},
    {"tool_choice", FACE_CHAT, parse_tool_choice},
    {"parallel_tool_calls", FACE_CHAT, parse_parallel},
    {"logprobs", FACE_CHAT, parse_logprobs},
    {"top_logprobs", FACE_CHAT, parse_top_logprobs},
    {"response_format", FACE_CHAT, parse_response_format},
    {"chat_template_kwargs", FACE_CHAT, parse_kwargs},
    {"reasoning_effort", FACE_CHAT, parse_effort},
    {"reasoning_format", FACE_CHAT, parse_reasoning_format},
    {"store", FACE_CHAT, parse_false},
    {"metadata", FACE_CHAT, parse_empty_object},
    {"service_tier", FACE_CHAT, parse_tier},
    {"verbosity", FACE_CHAT, parse_medium},
    {"modalities", FACE_CHAT, parse_modalities},
    {"audio", FACE_CHAT, parse_never},
    {"prediction", FACE_CHAT, parse_never},
    {"web_search_options", FACE_CHAT, parse_never},
    {"functions", FACE_CHAT, parse_never},
    {"function_call", FACE_CHAT, parse_never},
};

int openai_chat(const json_t *body, struct request **ret_request, struct reply **ret_reply,
                struct err *err)
{
    struct parse p = {.face = FACE_CHAT, .request = request_create(REQUEST_CHAT)};
    int r;

    p.request->split_reasoning = true;
    r = params_parse(&p, body, fields, ARRAY_LEN(fields), err);
    if (r >= 0 && !p.request->messages)
        r = params_wrong(err, "messages", "an array of at least one message");
    if (r >= 0 && p.request->n_top_logprobs && !p.request->logprobs)
        r = err_set_param(err, ERR_INVALID, "top_logprobs",
                          "'top_logprobs' needs 'logprobs': true");
    if (r >= 0)
        r = sampling_check(&p.request->sampling, err);
    if (r < 0) {
        request_destroy(p.request);
        return r;
    }
    if (p.no_tools) {
        json_decref(p.request->tools);
        p.request->tools = NULL;
    }
    *ret_request = p.request;
    *ret_reply = reply_create(REQUEST_CHAT, &p.reply, p.request->n);
    return 0;
}
