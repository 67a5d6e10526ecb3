/* Options of a verb by its table; see cmd.h. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "client/cmd.h"
#include "common/alloc.h"

int usage_error(const struct verb *v, const char *fmt, ...)
{
    va_list ap;

    fputs("rnbctl: ", stderr);
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fprintf(stderr, "\nusage: rnbctl %s%s%s\n", v->name, *v->synopsis ? " " : "", v->synopsis);
    return -1;
}

int wrong_usage(const struct verb *v, int n, const char *sentence)
{
    if (n >= 0)
        usage_error(v, "%s", sentence);
    return EXIT_USAGE;
}

static int store(const struct verb *v, const struct arg *a, const char *value)
{
    char *end;

    errno = 0;
    switch (a->type) {
    case ARG_FLAG: *(bool *)a->out = true; return 0;
    case ARG_TEXT: *(const char **)a->out = value; return 0;
    case ARG_INT: *(int64_t *)a->out = strtoll(value, &end, 10); break;
    case ARG_REAL: *(double *)a->out = strtod(value, &end); break;
    default: return 0;
    }
    if (errno || end == value || *end)
        return usage_error(v, "--%s wants a number, not '%s'", a->name, value);
    return 0;
}

static void print_help(const struct verb *v, const struct arg *args, size_t n)
{
    printf("usage: rnbctl %s%s%s\n\n%s\n", v->name, *v->synopsis ? " " : "", v->synopsis, v->help);
    if (n)
        putchar('\n');
    for (size_t i = 0; i < n; i++)
        printf("  %-22s %s\n",
               format_text("--%s%s%s", args[i].name, args[i].value ? " " : "",
                           args[i].value ? args[i].value : ""),
               args[i].help);
}

static const struct arg *find(const struct arg *args, size_t n, const char *name, size_t len)
{
    for (size_t i = 0; i < n; i++)
        if (strlen(args[i].name) == len && strncmp(args[i].name, name, len) == 0)
            return &args[i];
    return NULL;
}

/* argv[i] is "--name" or "--name=value".  Returns how many words it took, or -1. */
static int take(const struct verb *v, int argc, char **argv, int i, const struct arg *args,
                size_t n_args)
{
    const char *name = argv[i] + 2;
    size_t len = strcspn(name, "=");
    const struct arg *a = find(args, n_args, name, len);
    const char *value = name[len] ? name + len + 1 : NULL;

    if (!a && strcmp(name, "help") == 0) {
        print_help(v, args, n_args);
        exit(EXIT_OK);
    }
    if (!a)
        return usage_error(v, "%s has no option '--%.*s'", v->name, (int)len, name);
    if (a->type == ARG_FLAG)
        return value                   ? usage_error(v, "--%s takes no value", a->name)
               : store(v, a, NULL) < 0 ? -1
                                       : 1;
    if (value)
        return store(v, a, value) < 0 ? -1 : 1;
    if (i + 1 >= argc)
        return usage_error(v, "--%s needs a value (%s)", a->name, a->value);
    return store(v, a, argv[i + 1]) < 0 ? -1 : 2;
}

int args_parse(const struct verb *v, int argc, char **argv, const struct arg *args, size_t n_args)
{
    int n = 0;
    bool options = true;

    for (int i = 1; i < argc;) {
        int took = 1;

        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && strncmp(argv[i], "--", 2) == 0) {
            took = take(v, argc, argv, i, args, n_args);
            if (took < 0)
                return -1;
        } else {
            argv[++n] = argv[i];
        }
        i += took;
    }
    return n;
}

bool args_is_file(const char *text)
{
    size_t len = strlen(text);
    struct stat st;

    if (strchr(text, '/') || (len > 5 && strcmp(text + len - 5, ".gguf") == 0))
        return true;
    return stat(text, &st) == 0 && S_ISREG(st.st_mode);
}

char *args_target(const char *text)
{
    char *path = args_is_file(text) ? realpath(text, NULL) : NULL;

    return path ? path : xstrdup(text);
}
