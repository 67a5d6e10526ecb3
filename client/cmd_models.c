/* ps, models: what is loaded, what is known. */
#include <stdio.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"

static const char *until_text(const json_t *m)
{
    double ms = number_of(m, "until_ms");

    if (json_is_true(json_object_get(m, "busy")))
        return "busy";
    if (strcmp(text_of(m, "state"), "loading") == 0)
        return format_text("%.0f %%",
                           100 * number_of(m, "progress") / MAX(1, number_of(m, "total")));
    return json_is_true(json_object_get(m, "pin")) || ms < 0 ? "stays" : time_text(ms);
}

/* How it stands: and, where it has given back memory or is on its way out, how much of it is left. */
static const char *state_text(const json_t *m)
{
    const char *state = text_of(m, "state"), *stage = text_of(m, "stage");

    if (strcmp(stage, "caches") == 0)
        return format_text("%s, caches cut", state);
    if (strcmp(stage, "weights") == 0)
        return format_text("%s, weights cut", state);
    return strcmp(stage, "closing") == 0 ? format_text("%s, closing", state) : state;
}

static const char *rate_text(double per_second)
{
    return per_second > 0 ? format_text(">%.1f", per_second) : ">-";
}

/* Of the experts that decode has used, where not all are in memory. */
static const char *hits_text(const json_t *reads)
{
    double uses = number_of(reads, "uses");

    return uses > 0 ? format_text(">%.1f %%", 100 * number_of(reads, "hits") / uses) : ">-";
}

static int run_ps(struct client *c, int argc, char **argv);
static int run_models(struct client *c, int argc, char **argv);

const struct verb verb_ps = {"ps", "", "loaded models: size, resident, context, until, speed",
                             "model.list", run_ps};
const struct verb verb_models = {"models", "", "known models and their state", "model.list",
                                 run_models};

void print_loaded(const json_t *models)
{
    static const char *const heads[] = {"NAME",     "STATE", "TYPE",  ">SIZE",  ">RESIDENT",
                                        ">CHARGED", ">CTX",  "KV",    "UNTIL",  ">PP/s",
                                        ">TG/s",    ">READ", ">HITS", ">WAITED"};
    struct table *t = table_create(heads, ARRAY_LEN(heads));
    json_t *m;
    size_t i;

    json_array_foreach(models, i, m)
    {
        const json_t *reads = json_object_get(m, "reads");

        table_row(t, text_of(m, "name"), state_text(m), text_of(m, "type"),
                  format_text(">%s", size_text(number_of(m, "total_bytes"))),
                  format_text(">%s", size_text(number_of(m, "resident_bytes"))),
                  format_text(">%s", size_text(number_of(m, "charged_bytes"))),
                  format_text(">%.0f", number_of(m, "n_ctx")), text_of(m, "kv"), until_text(m),
                  rate_text(number_of(m, "pp_per_second")),
                  rate_text(number_of(m, "tg_per_second")),
                  format_text(">%s", size_text(number_of(reads, "read"))), hits_text(reads),
                  format_text(">%s", time_text(number_of(reads, "wait_ms"))));
    }
    table_print_and_destroy(t);
}

static int run_ps(struct client *c, int argc, char **argv)
{
    json_t *result;
    int status, n = args_parse(&verb_ps, argc, argv, NULL, 0);

    if (n != 0)
        return wrong_usage(&verb_ps, n, "ps takes no argument");
    status = call_or_print(c, "model.list", json_pack("{s:b}", "loaded", 1), NULL, NULL, &result);
    if (!result)
        return status;
    print_loaded(json_object_get(result, "models"));
    json_decref(result);
    return status;
}

static int run_models(struct client *c, int argc, char **argv)
{
    static const char *const heads[] = {"NAME", "STATE", "FILE"};
    json_t *result, *m;
    struct table *t;
    size_t i;
    int status, n = args_parse(&verb_models, argc, argv, NULL, 0);

    if (n != 0)
        return wrong_usage(&verb_models, n, "models takes no argument");
    status = call_or_print(c, "model.list", NULL, NULL, NULL, &result);
    if (!result)
        return status;
    t = table_create(heads, ARRAY_LEN(heads));
    json_array_foreach(json_object_get(result, "models"), i, m)
    {
        table_row(t, text_of(m, "name"), text_of(m, "state"), text_of(m, "path"));
        if (*text_of(m, "error"))
            table_row(t, "", "", text_of(m, "error"));
    }
    table_print_and_destroy(t);
    json_decref(result);
    return status;
}
