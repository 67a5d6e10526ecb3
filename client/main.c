/* Global options and the table of verbs; see cmd.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/alloc.h"
#include "common/utf8.h"

#define VERB(name) extern const struct verb verb_##name;
#include "gen/verbs.def"
#undef VERB

static const struct verb *const verbs[] = {
#define VERB(name) &verb_##name,
#include "gen/verbs.def"
#undef VERB
};

const struct verb *const *verb_list(size_t *ret_n)
{
    *ret_n = ARRAY_LEN(verbs);
    return verbs;
}

const struct verb *verb_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        if (strcmp(verbs[i]->name, name) == 0)
            return verbs[i];
    return NULL;
}

static void print_usage(FILE *out)
{
    fputs("usage: rnbctl [--socket PATH] [--json] VERB [ARGUMENT]...\n\n", out);
    for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
        fprintf(out, "  %-9s %s\n", verbs[i]->name, verbs[i]->help);
    fputs("\n`rnbctl help VERB` says more.  The daemon is found at $RNBD_SOCKET, or where rnbd "
          "puts its socket.\n",
          out);
}

static char *default_socket(void)
{
    const char *given = getenv("RNBD_SOCKET");
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    char *user;

    if (given && *given)
        return xstrdup(given);
    /* A user's own daemon first, then the system's. */
    user = runtime && *runtime ? xasprintf("%s/rnbd/control.sock", runtime) : NULL;
    if (user && access(user, F_OK) == 0)
        return user;
    free(user);
    return xstrdup("/run/rnbd/control.sock");
}

/* Takes the options in front of the verb.  Returns the index of the verb, or -1 after a word on stderr. */
static int global_options(int argc, char **argv, struct client *c)
{
    int i = 1;

    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            c->json = true;
        } else if (strcmp(argv[i], "--socket") == 0 && i + 1 < argc) {
            c->socket = argv[++i];
        } else if (strncmp(argv[i], "--socket=", 9) == 0) {
            c->socket = argv[i] + 9;
        } else if (strcmp(argv[i], "--version") == 0) {
            printf("rnbctl %s\n", RNBD_VERSION);
            exit(EXIT_OK);
        } else if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0) {
            print_usage(stdout);
            exit(EXIT_OK);
        } else {
            fprintf(stderr, "rnbctl: there is no option '%s' before a verb; see rnbctl --help\n",
                    argv[i]);
            return -1;
        }
    }
    return i;
}

/* JSON carries nothing else. */
static bool are_texts(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!utf8_valid(argv[i], strlen(argv[i]))) {
            fprintf(stderr, "rnbctl: argument %d is not valid UTF-8\n", i);
            return false;
        }
    return true;
}

int main(int argc, char **argv)
{
    struct str in = {0};
    char *socket = default_socket();
    struct client c = {.socket = socket, .fd = -1, .in = &in};
    int at = global_options(argc, argv, &c);
    const struct verb *v;
    int status = EXIT_USAGE;

    c.tty = isatty(STDOUT_FILENO);
    c.progress = isatty(STDERR_FILENO) && !c.json;
    if (at < 0 || !are_texts(argc, argv))
        goto out;
    if (at == argc) {
        print_usage(stderr);
        goto out;
    }
    v = verb_find(argv[at]);
    if (!v) {
        fprintf(stderr, "rnbctl: there is no verb '%s'; see rnbctl --help\n", argv[at]);
        goto out;
    }
    /* --json may also stand behind the verb. */
    for (int i = at + 1; i < argc && strcmp(argv[i], "--") != 0; i++)
        if (strcmp(argv[i], "--json") == 0 && v->methods[0]) {
            c.json = true;
            memmove(&argv[i], &argv[i + 1], (size_t)(argc - i) * sizeof *argv);
            argc--;
            break;
        }
    status = v->run(&c, argc - at, argv + at);
    if (fflush(stdout) != 0 && status == EXIT_OK) {
        perror("rnbctl: cannot write the answer");
        status = EXIT_REFUSED;
    }
out:
    call_close(&c);
    str_clear(&in);
    free(socket);
    return status;
}
