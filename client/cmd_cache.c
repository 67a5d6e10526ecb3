/* cache: what of a model is in memory, and how its experts hit. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_cache(struct client *c, int argc, char **argv);

const struct verb verb_cache = {"cache", "[NAME] [--map] [--experts] [--curve] [--trace FILE]",
                                "what of a model is in memory, how its experts hit, and what more "
                                "memory would buy",
                                "cache.report", run_cache};

/* A number of a layer, by its key in the report. */
struct column {
    const char *head, *key;
    enum { AS_COUNT, AS_BYTES, AS_MS } as;
};

static const char *cell_text(const struct column *c, double number)
{
    switch (c->as) {
    case AS_BYTES: return format_text(">%s", size_text(number));
    case AS_MS: return format_text(">%.0f ms", number);
    default: return format_text(*c->head == '>' ? ">%.0f" : "%.0f", number);
    }
}

static const struct column of_experts[] = {
    {"LAYER", "layer", AS_COUNT},    {">EXPERTS", "experts", AS_COUNT},
    {">SLOTS", "quota", AS_COUNT},   {">RESIDENT", "resident", AS_COUNT},
    {">WANTED", "wanted", AS_BYTES}, {">HIT", "hit", AS_BYTES},
    {">READ", "read", AS_BYTES},     {">WAITED", "wait_ms", AS_MS},
};

/* Dense weights; a layer with experts may be in both tables. */
static const struct column of_streamed[] = {
    {"LAYER STREAMED", "layer", AS_COUNT},
    {">WANTED", "wanted", AS_BYTES},
    {">READ", "read", AS_BYTES},
    {">AHEAD", "read_ahead", AS_BYTES},
    {">UNUSED", "read_ahead_unused", AS_BYTES},
    {">WAITED", "wait_ms", AS_MS},
};

/* A row a layer; nothing where there are none. */
static void print_columns(const json_t *layers, const struct column *columns, size_t n)
{
    const char *heads[ARRAY_LEN(of_experts)]; /* the longer one */
    struct table *t;
    size_t i;
    json_t *l;

    if (!json_array_size(layers))
        return;
    for (size_t k = 0; k < n; k++)
        heads[k] = columns[k].head;
    t = table_create(heads, n);
    json_array_foreach(layers, i, l)
    {
        for (size_t k = 0; k < n; k++)
            table_cell(t, cell_text(&columns[k], number_of(l, columns[k].key)));
    }
    table_print_and_destroy(t);
}

static double number_at(const json_t *o, const char *key, size_t i)
{
    return json_number_value(json_array_get(json_object_get(o, key), i));
}

/* A line a layer, a sign an expert: '.' not there, '-' not used lately, 1 to 9 by use. */
static void print_map(const json_t *map)
{
    size_t i;
    json_t *layer;

    json_array_foreach(map, i, layer)
    {
        const char *resident = text_of(layer, "resident");

        printf("%4.0f ", number_of(layer, "layer"));
        for (size_t e = 0; resident[e]; e++) {
            double heat = number_at(layer, "heat", e);

            putchar(resident[e] == '0' ? '.'
                    : heat < 0.5       ? '-'
                                       : '0' + (int)MIN(9.0, heat / 10 + 1));
        }
        putchar('\n');
    }
}

static void print_experts(const json_t *layers)
{
    static const char *const heads[] = {"LAYER",      ">EXPERT", "TIER", ">HEAT",
                                        ">LAST USED", ">READS",  ">READ"};
    struct table *t;
    size_t i, e;
    json_t *l, *tier;

    if (!json_array_size(layers))
        return;
    t = table_create(heads, ARRAY_LEN(heads));
    json_array_foreach(layers, i, l)
    {
        json_array_foreach(json_object_get(l, "tier"), e, tier)
        {
            const json_t *last = json_array_get(json_object_get(l, "last_use"), e);

            table_row(t, format_text("%.0f", number_of(l, "layer")), format_text(">%zu", e),
                      json_string_value(tier), format_text(">%.1f", number_at(l, "heat", e)),
                      json_is_integer(last)
                          ? format_text(">%.0f tokens ago", number_at(l, "last_use", e))
                          : ">never",
                      format_text(">%.0f", number_at(l, "reads", e)),
                      format_text(">%s", size_text(number_at(l, "read", e))));
        }
    }
    table_print_and_destroy(t);
}

static void print_curve(const json_t *curve)
{
    static const char *const heads[] = {">CACHE", ">BYTES", ">SLOTS", ">HITS", ">TOK/S"};
    struct table *t;
    size_t i;
    json_t *p;

    if (!json_array_size(curve)) {
        puts("nothing is known yet of other sizes: no token has been decoded by experts");
        return;
    }
    t = table_create(heads, ARRAY_LEN(heads));
    json_array_foreach(curve, i, p)
    {
        table_row(t, format_text(">%.1f x", number_of(p, "factor")),
                  format_text(">%s", size_text(number_of(p, "bytes"))),
                  format_text(">%.0f", number_of(p, "slots")),
                  format_text(">%.1f %%", 100 * number_of(p, "hit_rate")),
                  json_object_get(p, "tg_per_s") ? format_text(">%.2f", number_of(p, "tg_per_s"))
                                                 : ">-");
    }
    table_print_and_destroy(t);
}

static void print_summary(const json_t *r)
{
    const json_t *ring = json_object_get(r, "ring");

    print_text(text_of(r, "model"), true);
    printf(": %s, holds %s (floor %s); %s of %s weights resident\n", text_of(r, "mode"),
           size_text(number_of(r, "held")), size_text(number_of(r, "floor")),
           size_text(number_of(r, "resident")), size_text(number_of(r, "weights")));
    printf("dense %s, %.0f slots of experts %s, ring %s", size_text(number_of(r, "dense_bytes")),
           number_of(r, "slots"), size_text(number_of(r, "slots_bytes")),
           size_text(number_of(ring, "bytes")));
    printf(" for %s a token\n", size_text(number_of(ring, "bytes_per_token")));
    if (!json_is_string(json_object_get(r, "reader")))
        return;
    printf("reads by %s, %s; wanted %s, hit %s, read %s", text_of(r, "reader"),
           json_is_true(json_object_get(r, "direct")) ? "direct" : "buffered",
           size_text(number_of(r, "wanted")), size_text(number_of(r, "hit")),
           size_text(number_of(r, "read")));
    printf(" (%s of it not wanted)\n", size_text(number_of(r, "over_read")));
    printf(
        "experts hit %.1f %%; waited %.0f ms for reads; the drive gave %.0f MB/s while reading\n",
        100 * number_of(r, "hit_rate"), number_of(r, "wait_ms"), number_of(r, "device_mb_per_s"));
    if (*text_of(r, "drive_why"))
        printf("the drive: %s\n", text_of(r, "drive_why"));
    if (json_is_integer(json_object_get(r, "slots_cap")))
        printf("no more than %.0f slots for now: more made tokens slower\n",
               number_of(r, "slots_cap"));
}

static void print_report(const json_t *result, bool map, bool experts, bool curve)
{
    print_summary(result);
    if (map)
        print_map(json_object_get(result, "map"));
    else if (experts)
        print_experts(json_object_get(result, "experts"));
    else if (curve)
        print_curve(json_object_get(result, "curve"));
    else {
        print_columns(json_object_get(result, "layers"), of_experts, ARRAY_LEN(of_experts));
        print_columns(json_object_get(result, "streamed"), of_streamed, ARRAY_LEN(of_streamed));
    }
}

static void join(json_t *whole, const json_t *page, const char *key)
{
    json_array_extend(json_object_get(whole, key), json_object_get(page, key));
}

/* A reply is one line: the experts of a large mixture come in several, a few layers in each. */
static int whole_report(struct client *c, json_t *take_params, json_t **ret_result, struct err *err)
{
    json_t *whole = NULL;
    double from = 0, next = 0;
    int r;

    do {
        json_t *page;

        r = call_method(c, "cache.report", json_incref(take_params), NULL, NULL, &page, err);
        if (r < 0)
            break;
        from = next;
        next = number_of(page, "next");
        json_object_set(take_params, "model", json_object_get(page, "model"));
        json_object_set(take_params, "from", json_object_get(page, "next"));
        json_object_del(take_params, "trace"); /* it has begun, or ended */
        json_object_del(page, "next");
        if (whole) {
            join(whole, page, "map");
            join(whole, page, "experts");
            json_decref(page);
        } else {
            whole = page;
        }
    } while (next > from);
    json_decref(take_params);
    if (r < 0)
        json_decref(whole);
    else
        *ret_result = whole;
    return r;
}

static int run_cache(struct client *c, int argc, char **argv)
{
    bool map = false, experts = false, curve = false;
    const char *trace = NULL;
    const struct arg args[] = {
        {"map", NULL, ARG_FLAG, &map, "every expert of every layer"},
        {"experts", NULL, ARG_FLAG, &experts, "the same in numbers: last use, and what was read"},
        {"curve", NULL, ARG_FLAG, &curve, "what other sizes of the cache would hit"},
        {"trace", "FILE", ARG_TEXT, &trace,
         "record which experts every token chooses; an empty name ends it"}};
    int n = args_parse(&verb_cache, argc, argv, args, ARRAY_LEN(args));
    json_t *params, *result;
    struct err err;

    if (n < 0 || n > 1)
        return wrong_usage(&verb_cache, n, "cache takes one model at most");
    params = json_pack("{s:b, s:b, s:b}", "map", map, "experts", experts, "curve", curve);
    if (n == 1)
        json_object_set_new(params, "model", json_string(argv[1]));
    if (trace && *trace) {
        char *here = *trace == '/' ? NULL : getcwd(NULL, 0);
        char *path = here ? xasprintf("%s/%s", here, trace) : xstrdup(trace);

        json_object_set_new(params, "trace", json_string(path)); /* the daemon stands elsewhere */
        free(path);
        free(here);
    } else if (trace) {
        json_object_set_new(params, "trace", json_string(""));
    }
    if (whole_report(c, params, &result, &err) < 0)
        return print_error(&err);
    if (c->json)
        print_json(result);
    else
        print_report(result, map, experts, curve);
    json_decref(result);
    return EXIT_OK;
}
