/* bench: prefill and decode of a model, as the daemon does them. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_bench(struct client *c, int argc, char **argv);

const struct verb verb_bench = {"bench",
                                "NAME|FILE [--prompt N] [--gen N] [--depth N] [--repeats N]",
                                "tokens per second of prefill and decode", "bench.run", run_bench};

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* name ("pp", "tg") is also the key of the rates, one a run; n tokens each. */
static void add_row(struct table *t, const json_t *result, const char *name, double n)
{
    const json_t *list = json_object_get(result, name), *item;
    size_t runs = json_array_size(list), i;
    double *rates;

    if (runs == 0 || n == 0)
        return;
    rates = XNEW_ARRAY(double, runs);
    json_array_foreach(list, i, item) rates[i] = json_number_value(item);
    qsort(rates, runs, sizeof *rates, by_value);
    table_row(t, format_text("%s %.0f", name, n),
              format_text(">%.2f", (rates[(runs - 1) / 2] + rates[runs / 2]) / 2),
              format_text(">%.2f", rates[0]), format_text(">%.2f", rates[runs - 1]),
              format_text(">%zu", runs));
    free(rates);
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
    json_t *params, *result;
    struct table *t;
    char *target;
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
    add_row(t, result, "pp", number_of(result, "n_prompt"));
    add_row(t, result, "tg", number_of(result, "n_gen"));
    table_print_and_destroy(t);
    json_decref(result);
    return status;
}
