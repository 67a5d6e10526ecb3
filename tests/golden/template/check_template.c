/*
 * check_template - runs the files of this folder:
 *
 *     check_template FILE.test...
 *
 * A file is one feature of the template language: groups of three lines,
 * template / JSON object of variables / expected text, with an empty line
 * between groups; "¶" stands for a newline.  After a line %%FAIL the third
 * line is a part of the error instead.  Lines that begin with "#" are
 * comments where a group could begin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/json.h"
#include "daemon/template/template.h"

struct group {
    char *lines[3];
    bool must_fail;
    int line;
};

struct sum {
    int passed;
    int failed;
};

#define MAX_VARS 32

static void replace_marks(char *text)
{
    char *to = text;

    for (const char *p = text; *p;) {
        if (strncmp(p, "¶", strlen("¶")) == 0) {
            *to++ = '\n';
            p += strlen("¶");
        } else {
            *to++ = *p++;
        }
    }
    *to = '\0';
}

/* The next group of *at, or false at the end. */
static bool next_group(char **at, int *line, struct group *g)
{
    int n = 0;
    char *p;

    *g = (struct group){0};
    while (n < 3 && (p = strsep(at, "\n"))) {
        ++*line;
        if (n == 0 && (*p == '\0' || *p == '#'))
            continue;
        if (n == 0 && strcmp(p, "%%FAIL") == 0) {
            g->must_fail = true;
            continue;
        }
        if (n == 0)
            g->line = *line;
        g->lines[n++] = p;
    }
    return n == 3;
}

static int render(const struct group *g, struct template_output *out, struct err *err)
{
    struct template_var vars[MAX_VARS];
    struct template_context context = {.vars = vars};
    struct template *t = NULL;
    json_t *object = NULL;
    const char *key;
    json_t *value;
    int r;

    strptime("2026-09-28T12:34:56", "%Y-%m-%dT%H:%M:%S", &context.now);
    r = json_parse(g->lines[1], strlen(g->lines[1]), &object, err);
    if (r < 0)
        goto out;
    json_object_foreach(object, key, value) if (context.n_vars < MAX_VARS) vars[context.n_vars++] =
        (struct template_var){key, value, TEMPLATE_ORIGIN_MESSAGE};
    r = template_parse(g->lines[0], strlen(g->lines[0]), &t, err);
    if (r < 0)
        goto out;
    r = template_render(t, &context, NULL, out, err);
out:
    template_destroy(t);
    json_decref(object);
    return r;
}

static bool check_group(const char *file, const struct group *g)
{
    struct template_output out = {0};
    struct err err = {0};
    int r;
    bool ok;

    replace_marks(g->lines[0]);
    replace_marks(g->lines[2]);
    r = render(g, &out, &err);
    if (g->must_fail)
        ok = r < 0 && strstr(err.text, g->lines[2]);
    else
        ok = r == 0 && strcmp(str_text(&out.text), g->lines[2]) == 0;
    if (!ok)
        printf("%s:%d: got %s '%s'\n    want %s '%s'\n", file, g->line, r < 0 ? "error" : "text",
               r < 0 ? err.text : str_text(&out.text), g->must_fail ? "error" : "text",
               g->lines[2]);
    template_output_clear(&out);
    return ok;
}

static void check_file(const char *path, struct sum *sum)
{
    struct str text = {0};
    struct err err = {0};
    struct group g;
    int line = 0;
    char *at;

    if (file_read_all(path, (size_t)1 << 20, &text, &err) < 0) {
        printf("%s\n", err.text);
        sum->failed++;
        return;
    }
    at = text.p;
    while (next_group(&at, &line, &g))
        ++*(check_group(path, &g) ? &sum->passed : &sum->failed);
    if (g.lines[0]) {
        printf("%s:%d: a group has fewer than three lines\n", path, g.line);
        sum->failed++;
    }
    str_clear(&text);
}

int main(int argc, char **argv)
{
    struct sum sum = {0};

    for (int i = 1; i < argc; i++)
        check_file(argv[i], &sum);
    printf("template: %d passed, %d failed\n", sum.passed, sum.failed);
    return sum.failed || !sum.passed ? EXIT_FAILURE : EXIT_SUCCESS;
}
