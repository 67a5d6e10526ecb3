/* Conformance kit, malformed/: damaged files are refused in words, sound ones load and run; none hurts. */
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backends/backend.h"
#include "common/alloc.h"
#include "daemon/memory/ledger.h"
#include "daemon/model/model.h"
#include "tests/golden/kit.h"

#define MEMORY_MAX  ((size_t)1 << 30)
#define SECONDS_MAX 5

enum verdict { VERDICT_LOADED, VERDICT_REFUSED, VERDICT_SILENT, VERDICT_BROKEN };

/* What a child says, by its exit status and a pipe. */
struct outcome {
    enum verdict verdict;
    int signal;
    size_t memory_bytes;
    char text[400];
};

static int eval_three(struct model *m, struct err *err)
{
    static const int32_t ids[] = {1, 2, 3}, rows[] = {2};
    const float *logits;

    return model_eval(m, ids, 3, rows, 1, NULL, &logits, err);
}

static int load_and_eval(struct model *m, struct err *err)
{
    const struct backend_ops *ops = backend_by_name("cpu");
    struct backend_options options = {.threads = 1, .cpu = "auto"};
    struct model_options opt = {0};
    struct device device;
    struct backend *be;
    struct ledger *l;
    int r;

    if (ops->probe(&device, 1, err) < 1)
        return err_set(err, ERR_INTERNAL, "there is no CPU backend");
    r = ops->open(&device, &options, &be, err);
    if (r < 0)
        return r;
    l = ledger_create();
    ledger_set_capacity(l, POOL_RAM, MEMORY_MAX / 2);
    r = ledger_set_budget(l, POOL_RAM, MEMORY_MAX / 2, err);
    if (r == 0)
        r = model_load(m, &opt, l, ops, be, NULL, NULL, NULL, err);
    if (r == 0)
        r = eval_three(m, err);
    model_close(m);
    ledger_destroy(l);
    ops->close(be);
    return r;
}

/* In the child: opens, loads, runs; the sentence of a refusal goes to fd. */
static enum verdict try_file(const char *path, int fd)
{
    struct err err = {0};
    struct model *m;
    int r = model_open(path, &m, &err);

    if (r == 0)
        r = load_and_eval(m, &err);
    if (r == 0)
        return VERDICT_LOADED;
    if (write(fd, err.text, strlen(err.text)) < 1)
        return VERDICT_SILENT;
    return strchr(err.text, '\n') ? VERDICT_BROKEN : VERDICT_REFUSED;
}

static void limit_child(void)
{
    struct rlimit none = {0, 0};

    setrlimit(RLIMIT_CORE, &none);
    signal(SIGALRM, SIG_DFL);
    alarm(SECONDS_MAX);
}

static struct outcome run_child(const char *path)
{
    struct outcome o = {.verdict = VERDICT_BROKEN};
    struct rusage usage;
    int pipe_fd[2], status;
    ssize_t n;
    pid_t pid;

    fflush(stdout);
    if (pipe(pipe_fd) < 0 || (pid = fork()) < 0) {
        snprintf(o.text, sizeof o.text, "no child process");
        return o;
    }
    if (pid == 0) {
        close(pipe_fd[0]);
        limit_child();
        _exit(try_file(path, pipe_fd[1]));
    }
    close(pipe_fd[1]);
    n = read(pipe_fd[0], o.text, sizeof o.text - 1);
    o.text[n > 0 ? n : 0] = '\0';
    close(pipe_fd[0]);
    wait4(pid, &status, 0, &usage);
    o.memory_bytes = (size_t)usage.ru_maxrss * 1024;
    if (WIFSIGNALED(status))
        o.signal = WTERMSIG(status);
    else
        o.verdict = WEXITSTATUS(status) > VERDICT_BROKEN ? VERDICT_BROKEN
                                                         : (enum verdict)WEXITSTATUS(status);
    return o;
}

static void check_file(const char *kit_dir, const json_t *entry, struct kit_result *r)
{
    const char *file = json_string_value(json_object_get(entry, "file"));
    const char *expect = json_string_value(json_object_get(entry, "expect"));
    const char *cause = json_string_value(json_object_get(entry, "cause"));
    char *path = xasprintf("%s/malformed/%s", kit_dir, file);
    struct outcome o = run_child(path);
    bool loaded = o.verdict == VERDICT_LOADED, refused = o.verdict == VERDICT_REFUSED;

    free(path);
    if (o.signal)
        kit_line(r, "malformed", file, KIT_FAIL, "ended by signal %d (%s)", o.signal,
                 o.signal == SIGALRM ? "too slow" : cause);
    else if (!loaded && !refused)
        kit_line(r, "malformed", file, KIT_FAIL, "refused without a sentence, or status broken");
    else if (o.memory_bytes >= MEMORY_MAX)
        kit_line(r, "malformed", file, KIT_FAIL, "took %zu MiB", o.memory_bytes >> 20);
    else if (strcmp(expect, "either") != 0 && loaded != (strcmp(expect, "load") == 0))
        kit_line(r, "malformed", file, KIT_FAIL, "expected %s (%s): %s", expect, cause,
                 loaded ? "it loaded" : o.text);
    else
        kit_line(r, "malformed", file, KIT_PASS, "%s", loaded ? "loaded" : o.text);
}

int kit_malformed(const char *kit_dir, const char *match, struct kit_result *r)
{
    json_t *doc = kit_json(kit_dir, "malformed", "manifest.json"), *entry;
    size_t i;

    if (!doc)
        return -1;
    json_array_foreach(json_object_get(doc, "files"), i, entry)
    {
        const char *file = json_string_value(json_object_get(entry, "file"));

        if (kit_wanted(file, match))
            check_file(kit_dir, entry, r);
    }
    json_decref(doc);
    return 0;
}
