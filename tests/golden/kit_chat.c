/* Conformance kit, chat/: template renderings and language snippets, byte for byte. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/alloc.h"
#include "common/file.h"
#include "daemon/template/template.h"
#include "tests/golden/kit.h"

#define MAX_VARS 64

/* The variables of a case: those of its context, and tools and documents as none when absent. */
static size_t vars_of(json_t *context, struct template_var vars[MAX_VARS])
{
    static const char *const optional[] = {"tools", "documents"};
    size_t n = 0;
    const char *key;
    json_t *value;

    for (size_t i = 0; i < ARRAY_LEN(optional); i++)
        vars[n++] = (struct template_var){optional[i], json_null(), TEMPLATE_ORIGIN_TRUSTED};
    json_object_foreach(context, key, value) if (n < MAX_VARS) vars[n++] =
        (struct template_var){key, value, TEMPLATE_ORIGIN_MESSAGE};
    return n;
}

static struct tm time_of(const char *text)
{
    struct tm now = {0};

    strptime(text, "%Y-%m-%dT%H:%M:%S", &now);
    return now;
}

static void show(const char *name, const struct str *got, const char *want)
{
    const char *text = str_text(got);
    size_t at = 0;

    while (text[at] && text[at] == want[at])
        at++;
    at = at > 20 ? at - 20 : 0;
    printf("  %s, from byte %zu:\n    got  %.60s\n    want %.60s\n", name, at, text + at,
           strlen(want) > at ? want + at : "");
}

/* Whether a case passes: exact text, or an error where one is wanted. */
static bool check_case(const struct template *t, json_t *c, json_t *context, struct tm now,
                       const char *name)
{
    struct template_var vars[MAX_VARS];
    struct template_context ctx = {.vars = vars, .n_vars = vars_of(context, vars), .now = now};
    const char *expected = json_string_value(json_object_get(c, "expected"));
    const char *raised = json_string_value(json_object_get(c, "error"));
    const char *kind = json_string_value(json_object_get(c, "error_kind"));
    struct template_output out = {0};
    struct err err = {0};
    bool ok;

    if (template_render(t, &ctx, NULL, &out, &err) < 0) {
        /* Any other kind is a fault on the Python side: an error is as good as a rendering. */
        ok = !expected &&
             (strcmp(kind, "raised") != 0 ||
              (err.kind == ERR_INVALID && strncmp(err.text, raised, sizeof err.text - 1) == 0));
        if (!ok)
            printf("  %s: %s\n", name, err.text);
        return ok;
    }
    ok = expected ? strcmp(str_text(&out.text), expected) == 0 &&
                        out.text.len == json_string_length(json_object_get(c, "expected"))
                  : strcmp(kind, "raised") != 0;
    if (!ok)
        show(name, &out.text, expected ? expected : raised);
    template_output_clear(&out);
    return ok;
}

static void check_golden(const char *kit_dir, const char *file, struct kit_result *r)
{
    json_t *golden = kit_json(kit_dir, "chat/golden", file);
    char *path = xasprintf("%s/chat/templates/%.*s.jinja", kit_dir, (int)strlen(file) - 5, file);
    struct template *t = NULL;
    struct str text = {0};
    struct err err = {0};
    json_t *cases = json_object_get(golden, "cases");
    struct tm now = time_of("2026-09-28T12:34:56");
    size_t i, passed = 0;
    json_t *c;

    if (!golden || file_read_all(path, (size_t)1 << 20, &text, &err) < 0 ||
        template_parse(text.p, text.len, &t, &err) < 0) {
        kit_line(r, "chat", file, KIT_FAIL, "%s", err.text);
    } else {
        json_array_foreach(cases, i, c) passed +=
            check_case(t, c, json_object_get(c, "context"), now,
                       json_string_value(json_object_get(c, "name")));
        kit_line(r, "chat", file, passed == json_array_size(cases) ? KIT_PASS : KIT_FAIL,
                 "%zu of %zu cases", passed, json_array_size(cases));
    }
    template_destroy(t);
    str_clear(&text);
    json_decref(golden);
    free(path);
}

static bool check_snippet(json_t *c, json_t *context)
{
    json_t *source = json_object_get(c, "template");
    struct template *t = NULL;
    struct err err = {0};
    bool ok;

    if (template_parse(json_string_value(source), json_string_length(source), &t, &err) < 0) {
        printf("  %s: %s\n", json_string_value(source), err.text);
        return false;
    }
    ok = check_case(t, c, context, time_of("2026-09-28T12:34:56"), json_string_value(source));
    template_destroy(t);
    return ok;
}

static void check_snippets(const char *kit_dir, struct kit_result *r)
{
    json_t *unit = kit_json(kit_dir, "chat", "jinja_unit.json");
    json_t *cases = json_object_get(unit, "cases");
    size_t i, passed = 0;
    json_t *c;

    json_array_foreach(cases, i, c) passed += check_snippet(c, json_object_get(unit, "context"));
    kit_line(r, "chat", "jinja_unit.json",
             unit && passed == json_array_size(cases) ? KIT_PASS : KIT_FAIL, "%zu of %zu snippets",
             passed, json_array_size(cases));
    json_decref(unit);
}

int kit_chat(const char *kit_dir, const char *match, struct kit_result *r)
{
    char **names = NULL;
    int n = kit_list(kit_dir, "chat/golden", ".json", match, &names);

    if (n < 0)
        return -ERR_NOT_FOUND;
    for (int i = 0; i < n; i++)
        check_golden(kit_dir, names[i], r);
    kit_list_free(names, n);
    if (kit_wanted("jinja_unit.json", match))
        check_snippets(kit_dir, r);
    return 0;
}
