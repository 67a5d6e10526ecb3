/* status, reload, stop: the daemon itself. */
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_status(struct client *c, int argc, char **argv);
static int run_reload(struct client *c, int argc, char **argv);
static int run_stop(struct client *c, int argc, char **argv);

const struct verb verb_status = {"status", "", "one look at the daemon", "server.status",
                                 run_status};
const struct verb verb_reload = {"reload", "", "read the configuration again", "server.reload",
                                 run_reload};
const struct verb verb_stop = {"stop", "", "refuse new work, finish what runs, end",
                               "server.shutdown", run_stop};

static int no_arguments(const struct verb *v, int argc, char **argv)
{
    int n = args_parse(v, argc, argv, NULL, 0);

    return n > 0 ? usage_error(v, "%s takes no argument", v->name) : n;
}

static int run_status(struct client *c, int argc, char **argv)
{
    const json_t *e, *b;
    json_t *s;
    int status;

    if (no_arguments(&verb_status, argc, argv) < 0)
        return EXIT_USAGE;
    status = call_or_print(c, "server.status", NULL, NULL, NULL, &s);
    if (!s)
        return status;
    e = json_object_get(s, "engine");
    b = json_object_get(s, "budget");
    printf("rnbd %s, pid %.0f, up %s, %s\n", text_of(s, "version"), number_of(s, "pid"),
           time_text(number_of(s, "uptime_ms")), text_of(s, "state"));
    printf("device    %s (%s)\n", text_of(s, "device"), text_of(s, "device_detail"));
    printf("http      %s (port %.0f)\n", *text_of(s, "listen") ? text_of(s, "listen") : "none",
           number_of(s, "port"));
    printf("control   %s\n", text_of(s, "socket"));
    printf("memory    budget %s, used %s, resident %s\n", size_text(number_of(b, "budget")),
           size_text(number_of(b, "used")), size_text(number_of(s, "rss")));
    printf("requests  %.0f done, %.0f failed, %.0f cancelled, %.0f refused, %.0f running, %.0f "
           "waiting\n",
           number_of(e, "requests_done"), number_of(e, "requests_failed"),
           number_of(e, "requests_cancelled"), number_of(e, "requests_refused"),
           number_of(e, "running"), number_of(e, "waiting"));
    printf("tokens    %.0f prompt (%.0f cached), %.0f generated\n", number_of(e, "prompt_tokens"),
           number_of(e, "cached_tokens"), number_of(e, "completion_tokens"));
    json_decref(s);
    return status;
}

static int run_reload(struct client *c, int argc, char **argv)
{
    json_t *result, *key;
    size_t i;
    int status;

    if (no_arguments(&verb_reload, argc, argv) < 0)
        return EXIT_USAGE;
    status = call_or_print(c, "server.reload", NULL, NULL, NULL, &result);
    if (!result)
        return status;
    puts("reloaded");
    json_array_foreach(json_object_get(result, "restart"), i, key)
    {
        printf("%s has changed and needs a restart\n", json_string_value(key));
    }
    json_decref(result);
    return status;
}

static int run_stop(struct client *c, int argc, char **argv)
{
    json_t *result;
    int status;

    if (no_arguments(&verb_stop, argc, argv) < 0)
        return EXIT_USAGE;
    status = call_or_print(c, "server.shutdown", NULL, NULL, NULL, &result);
    if (!result)
        return status;
    puts("stopping");
    json_decref(result);
    return status;
}
