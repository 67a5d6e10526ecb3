/* See render_helper.h. */
#include "tests/unit/template/render_helper.h"

#include <check.h>
#include <stdio.h>

#include "common/str.h"

static size_t add_vars(struct template_var *vars, size_t n, json_t *object,
                       enum template_origin origin)
{
    const char *key;
    json_t *value;

    json_object_foreach(object, key, value) vars[n++] = (struct template_var){key, value, origin};
    return n;
}

static void show_marks(struct rendered *ret)
{
    size_t at = 0, n = 0;
    const char *text = str_text(&ret->out.text);

    for (size_t i = 0; i <= ret->out.n_spans; i++) {
        bool is = i < ret->out.n_spans;
        size_t from = is ? ret->out.spans[i].from : ret->out.text.len;
        size_t to = is ? ret->out.spans[i].to : from;

        n += (size_t)snprintf(ret->shown + n, sizeof ret->shown - n, "%.*s%s%.*s%s",
                              (int)(from - at), text + at, is ? "«" : "", (int)(to - from),
                              text + from, is ? "»" : "");
        ck_assert_uint_lt(n, sizeof ret->shown);
        at = to;
    }
}

void render(struct rendered *ret, const char *text, const char *trusted_json,
            const char *message_json, const struct template_limits *limits)
{
    static const char *const words[] = {"user", "assistant", NULL};
    struct template_var vars[32];
    struct template_context context = {
        .vars = vars, .trusted_key = "role", .trusted_words = words, .now = {.tm_mday = 1}};
    json_t *trusted = json_loads(trusted_json ? trusted_json : "{}", 0, NULL);
    json_t *message = json_loads(message_json ? message_json : "{}", 0, NULL);
    struct template *t = NULL;

    ck_assert_ptr_nonnull(trusted);
    ck_assert_ptr_nonnull(message);
    memset(ret, 0, sizeof *ret);
    context.n_vars = add_vars(vars, 0, trusted, TEMPLATE_ORIGIN_TRUSTED);
    context.n_vars = add_vars(vars, context.n_vars, message, TEMPLATE_ORIGIN_MESSAGE);
    ret->r = template_parse(text, strlen(text), &t, &ret->err);
    if (ret->r == 0)
        ret->r = template_render(t, &context, limits, &ret->out, &ret->err);
    if (ret->r == 0)
        show_marks(ret);
    template_destroy(t);
    json_decref(trusted);
    json_decref(message);
}

void rendered_clear(struct rendered *r)
{
    template_output_clear(&r->out);
}

const char *marked(const char *text, const char *message_json)
{
    static struct rendered r;

    render(&r, text, NULL, message_json, NULL);
    rendered_clear(&r);
    return r.r == 0 ? r.shown : r.err.text;
}

const char *plain(const char *text)
{
    return marked(text, NULL);
}
