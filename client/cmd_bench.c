/* bench: prefill and decode of a model, as the daemon does them. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_bench(struct client *c, int argc, char **argv);

const struct verb verb_bench = {"bench",
                                "NAME|FILE [--prompt N] [--gen N] [--depth N,…] [--repeats N]",
                                "tokens per second of prefill and decode", "bench.run", run_bench};

static void add_row(struct table *t, const json_t *test)
{
    table_row(t, format_text("%s %.0f", text_of(test, "test"), number_of(test, "n")),
              format_text(">%.0f", number_of(test, "depth")),
              format_text(">%.2f", number_of(test, "median")),
              format_text(">%.2f", number_of(test, "least")),
              format_text(">%.2f", number_of(test, "most")),
              format_text(">%.1f %%", 100 * number_of(test, "spread")),
              format_text(">%zu", json_array_size(json_object_get(test, "rates"))));
}

/* "0,2048,8192" as an array; NULL when it is not such a list. */
static json_t *depths_of(const char *text)
{
    json_t *list = json_array();

    for (const char *p = text;; p++) {
        char *end;
        long long depth = strtoll(p, &end, 10);

        if (end == p || depth < 0 || (*end && *end != ',')) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, json_integer(depth));
        p = end;
        if (!*p)
            return list;
    }
}

static int run_bench(struct client *c, int argc, char **argv)
{
    static const char *const heads[] = {"TEST",  ">DEPTH",  ">MEDIAN t/s", ">LEAST",
                                        ">MOST", ">SPREAD", ">RUNS"};
    int64_t prompt = 512, gen = 64, repeats = 5;
    const char *depth = "0";
    const struct arg args[] = {
        {"prompt", "N", ARG_INT, &prompt, "tokens of the prompt (512)"},
        {"gen", "N", ARG_INT, &gen, "tokens to generate (64)"},
        {"depth", "N,…", ARG_TEXT, &depth, "tokens in the context before, one or more (0)"},
        {"repeats", "N", ARG_INT, &repeats, "runs of each (5)"}};
    struct load_progress progress = {.client = c};
    json_t *result, *depths, *test;
    struct table *t;
    char *target;
    size_t i;
    int status, n = args_parse(&verb_bench, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_bench, n, "bench takes one file or name");
    depths = depths_of(depth);
    if (!depths) {
        usage_error(&verb_bench, "--depth takes numbers with commas between them, not '%s'", depth);
        return EXIT_USAGE;
    }
    target = args_target(argv[1]);
    status = call_or_print(c, "bench.run",
                           json_pack("{s:s, s:I, s:I, s:o, s:I}", "target", target, "prompt",
                                     (json_int_t)prompt, "gen", (json_int_t)gen, "depths", depths,
                                     "repeats", (json_int_t)repeats),
                           load_notify, &progress, &result);
    free(target);
    progress_end(c, &progress.bar);
    if (!result)
        return status;
    t = table_create(heads, ARRAY_LEN(heads));
    json_array_foreach(json_object_get(result, "tests"), i, test) add_row(t, test);
    table_print_and_destroy(t);
    json_decref(result);
    return status;
}
