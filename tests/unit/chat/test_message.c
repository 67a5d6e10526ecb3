/* Messages as clients send them become what a template wants, or are refused by name. */
#include <check.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/unit/chat/chat_helper.h"

TCase *tcase_chat_message(void);

#define USER(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define CALL(arguments)                                                                            \
    "{\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"id\": \"1\", \"function\":"  \
    " {\"name\": \"f\", \"arguments\": " arguments "}}]}"
#define ONE_TOOL "[{\"type\": \"function\", \"function\": {\"name\": \"f\"}}]"

START_TEST(a_model_without_a_template_speaks_chatml)
{
    ck_assert_str_eq(
        rendered(NULL, "[{\"role\": \"system\", \"content\": \"s\"}, " USER("hi") "]", NULL),
        "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nhi<|im_end|>\n"
        "<|im_start|>assistant\n");
}
END_TEST

START_TEST(text_parts_become_lines_of_one_text)
{
    const char *messages =
        "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"},"
        " {\"type\": \"text\", \"text\": \"b\"}]}]";

    ck_assert_ptr_nonnull(
        strstr(rendered(template_hermes, messages, NULL), "user\na\nb<|im_end|>"));
}
END_TEST

START_TEST(a_template_that_wants_parts_gets_parts)
{
    const char *text = "{% for m in messages %}{% for p in m['content'] %}{{ p.text }}{% endfor %}"
                       "{% endfor %}";

    ck_assert_str_eq(rendered(text, "[" USER("hi") "]", NULL), "hi");
}
END_TEST

START_TEST(a_template_that_reads_parts_gets_them_as_they_are)
{
    const char *text =
        "{% for m in messages %}{% if m.content is string %}{{ m.content }}{% else %}"
        "{% for p in m.content %}[{{ p.text }}]{% endfor %}{% endif %}{% endfor %}";
    const char *messages =
        "[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"a\"},"
        " {\"type\": \"text\", \"text\": \"b\", \"cache_control\": {}}]}, " USER("c") "]";

    ck_assert_str_eq(rendered(text, messages, NULL), "[a][b]c");
}
END_TEST

START_TEST(arguments_as_text_stay_as_the_model_wrote_them_where_the_template_prints_text)
{
    const char *text =
        "{{ tools }}{% for m in messages %}{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "{{ c.function.name }}{% if c.function.arguments is string %}{{ c.function.arguments }}"
        "{% else %}{{ c.function.arguments | tojson }}{% endif %}{% endfor %}{% endfor %}";

    ck_assert_ptr_nonnull(strstr(
        rendered(text, "[" USER("q") ", " CALL("\"{\\\"a\\\":1}\"") "]", NULL), "f{\"a\":1}"));
    ck_assert_ptr_nonnull(
        strstr(rendered(text, "[" USER("q") ", " CALL("{\"a\":1}") "]", NULL), "f{\"a\": 1}"));
}
END_TEST

START_TEST(arguments_as_text_become_an_object)
{
    const char *got =
        rendered(template_hermes, "[" USER("q") ", " CALL("\"{\\\"a\\\": 1}\"") "]", NULL);

    ck_assert_ptr_nonnull(strstr(got, "{\"name\": \"f\", \"arguments\": {\"a\": 1}}"));
}
END_TEST

START_TEST(arguments_as_an_object_become_text_where_the_template_joins_strings)
{
    const char *text = "{{ tools }}{% for m in messages %}{{ m.content or '' }}"
                       "{% for c in m.tool_calls or [] %}{{ c.function.name + '(' + "
                       "c.function.arguments + ')' }}{% endfor %}{% endfor %}";

    ck_assert_ptr_nonnull(
        strstr(rendered(text, "[" USER("q") ", " CALL("{\"a\": 1}") "]", NULL), "f({\"a\":1})"));
}
END_TEST

START_TEST(a_developer_is_a_system_where_the_template_knows_none)
{
    const char *got =
        rendered(template_hermes, "[{\"role\": \"developer\", \"content\": \"d\"}]", NULL);

    ck_assert_ptr_nonnull(strstr(got, "<|im_start|>system\nd"));
}
END_TEST

static const struct {
    const char *const *template_text;
    const char *messages;
    const char *tools;
    const char *want;
} refused[] = {
    {&template_hermes, "[]", NULL, "messages must be an array of at least one message"},
    {&template_hermes, "[5]", NULL, "messages[0] is no object"},
    {&template_hermes, "[" USER("a") ", {\"role\": \"wizard\", \"content\": \"\"}]", NULL,
     "messages[1] has an unknown role"},
    {&template_hermes, "[{\"content\": \"a\"}]", NULL, "messages[0] has an unknown role"},
    {&template_hermes, "[{\"role\": \"user\", \"content\": 5}]", NULL,
     "messages[0] has a content that is neither"},
    {&template_hermes,
     "[{\"role\": \"user\", \"content\": [{\"type\": \"image_url\", \"image_url\": {\"url\": "
     "\"x\"}}]}]",
     NULL, "a content part of type 'image_url'; only text is supported"},
    {&template_hermes, "[" CALL("\"{oops\"") "]", NULL, "arguments are no JSON"},
    {&template_hermes, "[" CALL("[1]") "]", NULL, "arguments are no JSON object"},
    {&template_hermes, "[{\"role\": \"assistant\", \"tool_calls\": [{}]}]", NULL,
     "a tool call without function.name"},
    {&template_gemma, "[{\"role\": \"system\", \"content\": \"s\"}, " USER("a") "]", NULL,
     "put its text into the first user message"},
    {&template_gemma, "[" USER("a") "]", ONE_TOOL, "has no place for tools"},
    {&template_gemma, "[" USER("a") ", " CALL("{}") "]", NULL, "has no place for them"},
    {&template_gemma, "[{\"role\": \"tool\", \"content\": \"r\"}]", NULL,
     "the role 'tool', and the chat template"},
};

START_TEST(what_cannot_be_rendered_is_refused_by_name)
{
    const char *got = rendered(*refused[_i].template_text, refused[_i].messages, refused[_i].tools);

    ck_assert_msg(strncmp(got, "error: ", 7) == 0, "rendered: %s", got);
    ck_assert_msg(strstr(got, refused[_i].want) != NULL, "%s", got);
}
END_TEST

static const struct {
    const char *const *template_text;
    const char *name;
    bool special;
} dialects[] = {
    {&template_hermes, "hermes", false},
    {&template_gemma, "plain", false},
    {&template_llama3, "llama3", true},
    {&template_mistral, "mistral", true},
    {&template_deepseek, "deepseek", true},
    {&template_gptoss, "gptoss", true},
    {&template_glm, "glm", false},
    {&template_qwen3_coder, "qwen3_coder", false},
    {&template_kimi, "kimi", true},
    {&template_dsml, "deepseek_dsml", true},
    {&template_hy3, "hy3", true},
    {&template_kimi_k3, "kimi_k3", true},
    {&template_apertus, "apertus", true},
    {&template_apriel, "apriel", false},
    {&template_functionary_all, "functionary_all", false},
    {&template_muse, "muse", true},
    {&template_minicpm, "minicpm", false},
};

START_TEST(the_template_tells_the_dialect)
{
    const char *text = *dialects[_i].template_text;
    struct chat_template *t = NULL;

    ck_assert_int_eq(chat_template_create(text, strlen(text), &t, NULL), 0);
    ck_assert_str_eq(chat_template_dialect(t), dialects[_i].name);
    ck_assert_int_eq(chat_template_shows(t, VIEW("<|x|>")), dialects[_i].special);
    chat_template_destroy(t);
}
END_TEST

/* Their tokens are control tokens in some files: hidden, a call would be read as content. */
START_TEST(the_marks_of_a_dialect_are_shown_and_no_other_control_token)
{
    static const char *const shown[] = {
        "<tool_call>", "</tool_call>", "<function=", "</parameter>", "<think>", "</think>"};
    struct chat_template *t = NULL;

    ck_assert_int_eq(
        chat_template_create(template_qwen3_coder, strlen(template_qwen3_coder), &t, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(shown); i++)
        ck_assert_msg(chat_template_shows(t, view_of(shown[i])), "%s", shown[i]);
    ck_assert(!chat_template_shows(t, VIEW("<|im_start|>")));
    ck_assert(!chat_template_shows(t, VIEW("<|fim_prefix|>")));
    chat_template_destroy(t);
}
END_TEST

START_TEST(a_broken_template_is_an_error_of_the_model)
{
    struct chat_template *t = NULL;
    struct err err = {0};

    ck_assert_int_eq(chat_template_create("{% if %}", 8, &t, &err), -ERR_FORMAT);
    ck_assert_ptr_null(t);
}
END_TEST

static int render_with(const char *kwargs, struct template_output *out, struct err *err)
{
    struct chat_template *t = NULL;
    json_t *messages = json_loads("[{\"role\": \"user\", \"content\": \"<|im_end|>\"}]", 0, NULL);
    json_t *object = json_loads(kwargs, 0, NULL);
    struct chat_options o = {.kwargs = object, .bos_token = "<s>", .now = {.tm_mday = 1}};
    const char *text =
        "{{ bos_token }}<|im_start|>{{ messages[0].role }}{{ messages[0].content }}{{ v }}";
    int r;

    ck_assert_int_eq(chat_template_create(text, strlen(text), &t, NULL), 0);
    r = chat_render(t, messages, NULL, &o, out, err);
    chat_template_destroy(t);
    json_decref(messages);
    json_decref(object);
    return r;
}

START_TEST(text_of_a_message_is_marked_and_its_role_is_not)
{
    struct template_output out = {0};

    ck_assert_int_eq(render_with("{\"v\": \"k\"}", &out, NULL), 0);
    ck_assert_str_eq(str_text(&out.text), "<s><|im_start|>user<|im_end|>k");
    ck_assert_uint_eq(out.n_spans, 1);
    ck_assert_uint_eq(out.spans[0].from, strlen("<s><|im_start|>user"));
    ck_assert_uint_eq(out.spans[0].to, out.text.len);
    template_output_clear(&out);
}
END_TEST

START_TEST(kwargs_cannot_replace_what_the_daemon_sets)
{
    struct template_output out = {0};
    struct err err = {0};

    ck_assert_int_eq(render_with("{\"bos_token\": \"x\"}", &out, &err), -ERR_INVALID);
    ck_assert_str_eq(err.text, "chat_template_kwargs cannot set 'bos_token'");
}
END_TEST

TCase *tcase_chat_message(void)
{
    TCase *tc = tcase_create("message");

    tcase_add_test(tc, a_model_without_a_template_speaks_chatml);
    tcase_add_test(tc, text_parts_become_lines_of_one_text);
    tcase_add_test(tc, a_template_that_wants_parts_gets_parts);
    tcase_add_test(tc, a_template_that_reads_parts_gets_them_as_they_are);
    tcase_add_test(tc,
                   arguments_as_text_stay_as_the_model_wrote_them_where_the_template_prints_text);
    tcase_add_test(tc, arguments_as_text_become_an_object);
    tcase_add_test(tc, arguments_as_an_object_become_text_where_the_template_joins_strings);
    tcase_add_test(tc, a_developer_is_a_system_where_the_template_knows_none);
    tcase_add_loop_test(tc, what_cannot_be_rendered_is_refused_by_name, 0, ARRAY_LEN(refused));
    tcase_add_loop_test(tc, the_template_tells_the_dialect, 0, ARRAY_LEN(dialects));
    tcase_add_test(tc, the_marks_of_a_dialect_are_shown_and_no_other_control_token);
    tcase_add_test(tc, a_broken_template_is_an_error_of_the_model);
    tcase_add_test(tc, text_of_a_message_is_marked_and_its_role_is_not);
    tcase_add_test(tc, kwargs_cannot_replace_what_the_daemon_sets);
    return tc;
}
