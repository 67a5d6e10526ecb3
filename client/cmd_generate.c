/* run, chat: answers in the terminal. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/alloc.h"
#include "common/str.h"
#include "common/utf8.h"

static int run_run(struct client *c, int argc, char **argv);
static int run_chat(struct client *c, int argc, char **argv);

const struct verb verb_run = {
    "run",
    "MODEL [PROMPT] [--system TEXT] [--raw] [--max-tokens N] [--temperature X] [--top-p X] "
    "[--top-k N] [--seed N] [--stats]",
    "one answer, streamed; the prompt comes from stdin where it is not given",
    "generate model.load", run_run};
const struct verb verb_chat = {
    "chat", "MODEL [--system TEXT] [--max-tokens N] [--temperature X] [--seed N]",
    "a conversation; /clear forgets it, /exit or Ctrl-D ends it", "generate model.load", run_chat};

struct sampling_args {
    const char *system;
    int64_t max_tokens, top_k, seed;
    double temperature, top_p;
    bool raw, stats;
};

#define SAMPLING_ARGS(s)                                                                           \
    {"system", "TEXT", ARG_TEXT, &(s).system, "system message"},                                   \
        {"max-tokens", "N", ARG_INT, &(s).max_tokens, "end after N tokens"},                       \
        {"temperature", "X", ARG_REAL, &(s).temperature, "0 takes the likeliest token each time"}, \
        {"top-p", "X", ARG_REAL, &(s).top_p, "keep the likeliest tokens that sum to X"},           \
        {"top-k", "N", ARG_INT, &(s).top_k, "keep the N likeliest tokens"},                        \
    {                                                                                              \
        "seed", "N", ARG_INT, &(s).seed, "seed of the random numbers"                              \
    }

static const struct sampling_args no_sampling = {
    .max_tokens = -1, .top_k = -1, .seed = -1, .temperature = -1, .top_p = -1};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

static void catch_interrupt(struct client *c)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    sigaction(SIGINT, &action, NULL);
    c->interrupt = &interrupted;
}

/* -- one answer ------------------------------------------------------------------------------------ */

struct answer {
    struct client *client;
    struct progress bar;
    struct str text;
    bool in_reasoning;
};

/* Reasoning is dimmed on a terminal, and left out of a pipe: what follows is the answer. */
static void print_piece(struct answer *a, const char *kind, const char *text)
{
    bool dim = strcmp(kind, "text") != 0;
    bool colour = a->client->tty && !getenv("NO_COLOR");

    if (!dim)
        str_adds(&a->text, text);
    if (dim && !a->client->tty)
        return;
    if (colour && dim != a->in_reasoning)
        fputs(dim ? "\x1b[2m" : "\x1b[0m\n", stdout);
    a->in_reasoning = dim;
    if (a->client->tty)
        print_text(text, false);
    else
        fputs(text, stdout);
    fflush(stdout);
}

static void on_notify(void *arg, const char *method, const json_t *params)
{
    struct answer *a = arg;

    if (a->client->json)
        return;
    if (strcmp(method, "text") == 0) {
        progress_end(a->client, &a->bar);
        print_piece(a, text_of(params, "kind"), text_of(params, "text"));
    } else if (a->client->progress && number_of(params, "done") < number_of(params, "total")) {
        progress_show(a->client, &a->bar, text_of(params, "step"), number_of(params, "done"),
                      number_of(params, "total"),
                      strcasecmp(text_of(params, "step"), "loading") == 0);
    }
}

static json_t *params_of(const struct sampling_args *s, const char *model)
{
    json_t *p = json_pack("{s:s}", "model", model);

    if (s->max_tokens >= 0)
        json_object_set_new(p, "max_tokens", json_integer(s->max_tokens));
    if (s->top_k >= 0)
        json_object_set_new(p, "top_k", json_integer(s->top_k));
    if (s->seed >= 0)
        json_object_set_new(p, "seed", json_integer(s->seed));
    if (s->temperature >= 0)
        json_object_set_new(p, "temperature", json_real(s->temperature));
    if (s->top_p >= 0)
        json_object_set_new(p, "top_p", json_real(s->top_p));
    return p;
}

static void print_stats(const json_t *result)
{
    const json_t *t = json_object_get(result, "timings"), *u = json_object_get(result, "usage");

    fprintf(
        stderr,
        "%.0f prompt tokens (%.0f cached) at %.1f/s, %.0f tokens at %.1f/s, first after %s, %s\n",
        number_of(u, "prompt_tokens"), number_of(u, "cached_tokens"), number_of(t, "pp_per_second"),
        number_of(u, "completion_tokens"), number_of(t, "tg_per_second"),
        time_text(number_of(t, "ttft_ms")), text_of(result, "finish"));
}

static int generate(struct client *c, json_t *take_params, bool stats, struct str *ret_text)
{
    struct answer a = {.client = c};
    json_t *result = NULL;
    struct err err;
    int r;

    interrupted = 0;
    r = call_method(c, "generate", take_params, on_notify, &a, &result, &err);
    progress_end(c, &a.bar);
    if (c->tty && a.in_reasoning && !getenv("NO_COLOR"))
        fputs("\x1b[0m", stdout);
    if (c->json && r == 0)
        print_json(result);
    else if (r == 0 || a.text.len)
        putchar('\n');
    fflush(stdout);
    if (r == 0 && stats)
        print_stats(result);
    json_decref(result);
    if (ret_text)
        *ret_text = a.text;
    else
        str_clear(&a.text);
    if (r < 0) {
        call_close(c);
        return err.kind == ERR_CANCELLED && interrupted
                   ? (fputs("\nrnbctl: interrupted\n", stderr), EXIT_REFUSED)
                   : print_error(&err);
    }
    return EXIT_OK;
}

/* A file is loaded first; the name it is given runs it. */
static int model_of(struct client *c, const char *text, char **ret_name)
{
    struct load_progress progress = {.client = c};
    json_t *m = NULL;
    struct err err;
    char *target;
    int r;

    if (!args_is_file(text)) {
        *ret_name = xstrdup(text);
        return 0;
    }
    target = args_target(text);
    r = call_method(c, "model.load", json_pack("{s:s}", "target", target), load_notify, &progress,
                    &m, &err);
    free(target);
    progress_end(c, &progress.bar);
    if (r < 0)
        return print_error(&err), -1;
    *ret_name = xstrdup(text_of(m, "name"));
    json_decref(m);
    return 0;
}

static void add_message(json_t *messages, const char *role, const char *text)
{
    json_array_append_new(messages, json_pack("{s:s, s:s}", "role", role, "content", text));
}

static int read_stdin(struct str *out)
{
    char chunk[16384];
    size_t n;

    while ((n = fread(chunk, 1, sizeof chunk, stdin)) > 0)
        str_add(out, chunk, n);
    return ferror(stdin) ? -1 : 0;
}

/* What a call can carry.  Returns false after saying what is wrong. */
static bool is_text(const char *p, size_t n)
{
    if (utf8_valid(p, n) && !memchr(p, 0, n))
        return true;
    fputs("rnbctl: the prompt is no text: it must be UTF-8 without NUL bytes\n", stderr);
    return false;
}

static int run_run(struct client *c, int argc, char **argv)
{
    struct sampling_args s = no_sampling;
    const struct arg args[] = {
        SAMPLING_ARGS(s),
        {"raw", NULL, ARG_FLAG, &s.raw, "the prompt as it is, without the chat template"},
        {"stats", NULL, ARG_FLAG, &s.stats, "speed on stderr at the end"}};
    struct str prompt = {0};
    json_t *params, *messages;
    char *model = NULL;
    int status, n = args_parse(&verb_run, argc, argv, args, ARRAY_LEN(args));

    if (n < 1 || n > 2)
        return wrong_usage(&verb_run, n, "run takes a model and a prompt");
    if (n == 2 && strcmp(argv[2], "-") != 0)
        str_adds(&prompt, argv[2]);
    else if (read_stdin(&prompt) < 0)
        return wrong_usage(&verb_run, 0, "cannot read the prompt from stdin");
    catch_interrupt(c);
    if (!is_text(str_text(&prompt), prompt.len) || model_of(c, argv[1], &model) < 0) {
        str_clear(&prompt);
        return EXIT_REFUSED;
    }
    params = params_of(&s, model);
    if (s.raw) {
        json_object_set_new(params, "prompt", json_string(str_text(&prompt)));
    } else {
        messages = json_array();
        if (s.system)
            add_message(messages, "system", s.system);
        add_message(messages, "user", str_text(&prompt));
        json_object_set_new(params, "messages", messages);
    }
    str_clear(&prompt);
    free(model);
    status = generate(c, params, s.stats, NULL);
    return status;
}

/* -- a conversation ---------------------------------------------------------------------------------- */

static json_t *fresh_messages(const struct sampling_args *s)
{
    json_t *messages = json_array();

    if (s->system)
        add_message(messages, "system", s->system);
    return messages;
}

static void one_turn(struct client *c, const struct sampling_args *s, const char *model,
                     json_t *messages, const char *line)
{
    json_t *params = params_of(s, model);
    struct str answer = {0};

    add_message(messages, "user", line);
    json_object_set(params, "messages", messages);
    generate(c, params, false, &answer);
    /* An answer that was cut off still is what was said; a refused one leaves no turn behind. */
    if (answer.len)
        add_message(messages, "assistant", str_text(&answer));
    else
        json_array_remove(messages, json_array_size(messages) - 1);
    str_clear(&answer);
}

static int run_chat(struct client *c, int argc, char **argv)
{
    struct sampling_args s = no_sampling;
    const struct arg args[] = {SAMPLING_ARGS(s)};
    json_t *messages;
    char *model = NULL, *line = NULL;
    size_t cap = 0;
    ssize_t len;
    int n = args_parse(&verb_chat, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_chat, n, "chat takes a model");
    catch_interrupt(c);
    if (model_of(c, argv[1], &model) < 0)
        return EXIT_REFUSED;
    messages = fresh_messages(&s);
    for (;;) {
        if (c->tty)
            fputs("> ", stdout);
        fflush(stdout);
        len = getline(&line, &cap, stdin);
        if (len < 0 && interrupted && errno == EINTR) {
            clearerr(stdin);
            interrupted = 0;
            putchar('\n');
            continue;
        }
        if (len < 0 || strcmp(line, "/exit\n") == 0)
            break;
        if (len && line[len - 1] == '\n')
            line[len - 1] = '\0';
        if (!is_text(line, (size_t)len - (len && !line[len - 1])))
            continue;
        if (strcmp(line, "/clear") == 0) {
            json_decref(messages);
            messages = fresh_messages(&s);
        } else if (*line) {
            one_turn(c, &s, model, messages, line);
        }
    }
    free(line);
    free(model);
    json_decref(messages);
    return EXIT_OK;
}
