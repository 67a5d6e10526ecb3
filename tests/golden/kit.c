/* What the runners of the kit share; see kit.h. */
#include "tests/golden/kit.h"

#include <dirent.h>
#include <regex.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"

void kit_line(struct kit_result *r, const char *section, const char *file, int status,
              const char *fmt, ...)
{
    va_list ap;

    printf("%s %s/%s: ",
           status == KIT_PASS   ? "pass"
           : status == KIT_FAIL ? "FAIL"
                                : "skip",
           section, file);
    va_start(ap, fmt);
    vprintf(fmt, ap);
    va_end(ap);
    putchar('\n');
    *(status == KIT_PASS ? &r->passed : status == KIT_FAIL ? &r->failed : &r->skipped) += 1;
}

bool kit_wanted(const char *file, const char *match)
{
    regex_t pattern;
    bool wanted;

    if (!match || !*match)
        return true;
    if (regcomp(&pattern, match, REG_EXTENDED | REG_NOSUB) != 0) {
        fprintf(stderr, "kit: '%s' is no regular expression\n", match);
        exit(2);
    }
    wanted = regexec(&pattern, file, 0, NULL, 0) == 0;
    regfree(&pattern);
    return wanted;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int kit_list(const char *dir, const char *section, const char *suffix, const char *match,
             char ***ret_names)
{
    char *path = xasprintf("%s/%s", dir, section);
    DIR *d = opendir(path);
    char **names = NULL;
    size_t n = 0, cap = 0;

    free(path);
    if (!d)
        return -1;
    for (struct dirent *e; (e = readdir(d));) {
        size_t len = strlen(e->d_name), tail = strlen(suffix);

        if (len < tail || strcmp(e->d_name + len - tail, suffix) != 0)
            continue;
        if (!kit_wanted(e->d_name, match))
            continue;
        ARRAY_GROW(names, n + 1, cap);
        names[n++] = xstrdup(e->d_name);
    }
    closedir(d);
    if (n)
        qsort(names, n, sizeof *names, by_name);
    *ret_names = names;
    return (int)n;
}

void kit_list_free(char **names, int n)
{
    for (int i = 0; i < n; i++)
        free(names[i]);
    free(names);
}

json_t *kit_json(const char *dir, const char *section, const char *name)
{
    char *path = xasprintf("%s/%s/%s", dir, section, name);
    json_error_t e;
    json_t *j = json_load_file(path, JSON_ALLOW_NUL, &e);

    if (!j)
        fprintf(stderr, "%s:%d: %s\n", path, e.line, e.text);
    free(path);
    return j;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

uint8_t *kit_hex(const char *text, size_t *ret_n)
{
    size_t n = text ? strlen(text) / 2 : 0;
    uint8_t *bytes = xcalloc(n + 1, 1);

    for (size_t i = 0; i < n; i++) {
        int hi = digit(text[2 * i]), lo = digit(text[2 * i + 1]);

        if (hi < 0 || lo < 0) {
            free(bytes);
            return NULL;
        }
        bytes[i] = (uint8_t)(hi << 4 | lo);
    }
    *ret_n = n;
    return bytes;
}
