/* bench: prefill and decode of a model, as the daemon does them. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_bench(struct client *c, int argc, char **argv);

const struct verb verb_bench = {"bench",
                                "NAME|FILE [--prompt N] [--gen N] [--depth N] [--repeats N]",
                                "tokens per second of prefill and decode", "bench.run", run_bench};

static void add_row(struct table *t, const json_t *r)
{
    table_row(t, text_of(r, "test"), format_text(">%.2f", number_of(r, "median")),
              format_text(">%.2f", number_of(r, "least")),
              format_text(">%.2f", number_of(r, "most")),
              format_text(">%.0f", number_of(r, "repeats")));
}

static int run_bench(struct client *c, int argc, char **argv)
{
    static const char *const heads[] = {"TEST", ">MEDIAN t/s", ">LEAST", ">MOST", ">RUNS"};
    int64_t prompt = 512, gen = 64, depth = 0, repeats = 5;
    const struct arg args[] = {{"prompt", "N", ARG_INT, &prompt, "tokens of the prompt (512)"},
                               {"gen", "N", ARG_INT, &gen, "tokens to generate (64)"},
                               {"depth", "N", ARG_INT, &depth, "tokens in the context before (0)"},
                               {"repeats", "N", ARG_INT, &repeats, "runs of each (5)"}};
    struct load_progress progress = {.client = c};
    json_t *params, *result, *r;
    struct table *t;
    char *target;
    size_t i;
    int status, n = args_parse(&verb_bench, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_bench, n, "bench takes one file or name");
    target = args_target(argv[1]);
    params = json_pack("{s:s, s:I, s:I, s:I, s:I}", "target", target, "prompt", (json_int_t)prompt,
                       "gen", (json_int_t)gen, "depth", (json_int_t)depth, "repeats",
                       (json_int_t)repeats);
    free(target);
    status = call_or_print(c, "bench.run", params, load_notify, &progress, &result);
    progress_end(c, &progress.bar);
    if (!result)
        return status;
    t = table_create(heads, ARRAY_LEN(heads));
    json_array_foreach(json_object_get(result, "tests"), i, r)
    {
        add_row(t, r);
    }
    table_print_and_destroy(t);
    json_decref(result);
    return status;
}
