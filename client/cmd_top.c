/* top: models, requests and memory, again and again. */
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/alloc.h"
#include "common/clock.h"

static int run_top(struct client *c, int argc, char **argv);

const struct verb verb_top = {"top", "[--every SECONDS] [--count N]",
                              "models, requests, memory and speed, until Ctrl-C",
                              "server.status model.list request.list", run_top};

/* What a frame is drawn from. */
struct look {
    json_t *status, *models, *requests;
    int64_t at_ms;
};

static void forget(struct look *l)
{
    json_decref(l->status);
    json_decref(l->models);
    json_decref(l->requests);
    *l = (struct look){0};
}

static int take_look(struct client *c, struct look *l, struct err *err)
{
    int r = call_method(c, "server.status", NULL, NULL, NULL, &l->status, err);

    if (r >= 0)
        r = call_method(c, "model.list", json_pack("{s:b}", "loaded", 1), NULL, NULL, &l->models,
                        err);
    if (r >= 0)
        r = call_method(c, "request.list", NULL, NULL, NULL, &l->requests, err);
    l->at_ms = clock_ms();
    return r;
}

/* Growth of one of the engine's counters between two looks, per second. */
static double rate(const struct look *before, const struct look *now, const char *key)
{
    double seconds = (double)(now->at_ms - before->at_ms) / 1000;

    if (!before->status || seconds <= 0)
        return 0;
    return (number_of(json_object_get(now->status, "engine"), key) -
            number_of(json_object_get(before->status, "engine"), key)) /
           seconds;
}

static void show(const struct client *c, const struct look *before, const struct look *now)
{
    const json_t *b = json_object_get(now->status, "budget");
    const json_t *e = json_object_get(now->status, "engine");

    if (c->tty)
        fputs("\x1b[H\x1b[2J", stdout);
    printf("rnbd %s, up %s, %s   %s\n", text_of(now->status, "version"),
           time_text(number_of(now->status, "uptime_ms")), text_of(now->status, "state"),
           text_of(now->status, "device_detail"));
    printf("memory    used %s of %s, resident %s\n", size_text(number_of(b, "used")),
           size_text(number_of(b, "budget")), size_text(number_of(now->status, "rss")));
    printf("requests  %.0f running, %.0f waiting, %.0f done; read %s/s\n\n",
           number_of(e, "running"), number_of(e, "waiting"), number_of(e, "requests_done"),
           size_text(rate(before, now, "bytes_read")));
    print_loaded(json_object_get(now->models, "models"));
    if (json_array_size(json_object_get(now->requests, "requests"))) {
        putchar('\n');
        print_requests(json_object_get(now->requests, "requests"));
    }
    fflush(stdout);
}

static void show_json(const struct look *now)
{
    json_t *all = json_pack("{s:O, s:O, s:O}", "status", now->status, "models",
                            json_object_get(now->models, "models"), "requests",
                            json_object_get(now->requests, "requests"));

    print_json(all);
    json_decref(all);
    fflush(stdout);
}

static int run_top(struct client *c, int argc, char **argv)
{
    double every = 1;
    int64_t count = c->tty ? 0 : 1;
    const struct arg args[] = {
        {"every", "SECONDS", ARG_REAL, &every, "time between two looks (1)"},
        {"count", "N", ARG_INT, &count, "end after N looks; 0: go on (1 in a pipe)"},
    };
    struct look before = {0}, now = {0};
    struct timespec pause;
    struct err err;
    int r = 0, n = args_parse(&verb_top, argc, argv, args, ARRAY_LEN(args));

    if (n != 0)
        return wrong_usage(&verb_top, n, "top takes no argument");
    if (!(every >= 0.1 && every <= 3600) || count < 0)
        return wrong_usage(&verb_top, 0, "--every is 0.1 to 3600 seconds, --count at least 0");
    pause = (struct timespec){(time_t)every, (long)((every - (double)(time_t)every) * 1e9)};
    for (int64_t i = 0; r >= 0 && (count == 0 || i < count); i++) {
        if (i > 0) {
            if (!c->tty && !c->json)
                putchar('\n');
            nanosleep(&pause, NULL);
        }
        r = take_look(c, &now, &err);
        if (r >= 0 && c->json)
            show_json(&now);
        else if (r >= 0)
            show(c, &before, &now);
        forget(&before);
        before = now;
        now = (struct look){0};
        if (ferror(stdout))
            break;
    }
    forget(&before);
    return r < 0 ? print_error(&err) : EXIT_OK;
}
