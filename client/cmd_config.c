/* config check, logs: what other programs of this machine know. */
#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_config(struct client *c, int argc, char **argv);
static int run_logs(struct client *c, int argc, char **argv);

const struct verb verb_config = {"config", "check [FILE]", "is the configuration file right?", "",
                                 run_config};
const struct verb verb_logs = {"logs", "[JOURNALCTL-OPTION]...",
                               "what the service has logged (journalctl)", "", run_logs};

/* The rnbd that was installed, or built, beside this rnbctl; else the one in PATH. */
static char *find_rnbd(void)
{
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    char *path;

    if (n > 0) {
        self[n] = '\0';
        path = xasprintf("%s/rnbd", dirname(self));
        if (access(path, X_OK) == 0)
            return path;
        free(path);
    }
    return xstrdup("rnbd");
}

static int run_config(struct client *c, int argc, char **argv)
{
    char check[] = "--check-config", config[] = "--config";
    char *words[5] = {NULL};
    int n = args_parse(&verb_config, argc, argv, NULL, 0);

    (void)c;
    if (n < 1 || n > 2 || strcmp(argv[1], "check") != 0)
        return wrong_usage(&verb_config, n, "config takes check and a file");
    words[0] = find_rnbd();
    words[1] = check;
    if (n == 2) {
        words[2] = config;
        words[3] = argv[2];
    }
    execvp(words[0], words);
    fprintf(stderr, "rnbctl: cannot run %s: %s\n", words[0], strerror(errno));
    free(words[0]);
    return EXIT_REFUSED;
}

static int run_logs(struct client *c, int argc, char **argv)
{
    char program[] = "journalctl", unit[] = "--unit=rnbd", user[] = "--user-unit=rnbd";
    char **words = XNEW_ARRAY(char *, (size_t)argc + 3);
    int status = EXIT_REFUSED;

    (void)c;
    words[0] = program;
    words[1] = geteuid() == 0 ? unit : user;
    for (int i = 1; i < argc; i++)
        words[i + 1] = argv[i];
    execvp(program, words);
    fprintf(stderr, "rnbctl: cannot run journalctl: %s\n", strerror(errno));
    free(words);
    return status;
}
