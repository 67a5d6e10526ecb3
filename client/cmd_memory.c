/* memory, budget: who holds which byte, and how many there may be. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_memory(struct client *c, int argc, char **argv);
static int run_budget(struct client *c, int argc, char **argv);

const struct verb verb_memory = {"memory", "", "the ledger, by pool and account", "memory.report",
                                 run_memory};
const struct verb verb_budget = {"budget", "[ram=SIZE] [--force] [--cancel]",
                                 "show the memory budget, or change it live",
                                 "budget.get budget.set", run_budget};

static void print_pool(const json_t *pool)
{
    static const char *const heads[] = {"ACCOUNT", ">BYTES", ">PEAK"};
    struct table *t = table_create(heads, ARRAY_LEN(heads));
    size_t i;
    json_t *a;

    printf("pool %s: budget %s, used %s, free %s, peak %s, refused %.0f\n", text_of(pool, "name"),
           size_text(number_of(pool, "budget")), size_text(number_of(pool, "used")),
           size_text(MAX(0, number_of(pool, "budget") - number_of(pool, "used"))),
           size_text(number_of(pool, "peak")), number_of(pool, "refused"));
    json_array_foreach(json_object_get(pool, "accounts"), i, a)
    {
        table_row(t, text_of(a, "name"), format_text(">%s", size_text(number_of(a, "bytes"))),
                  format_text(">%s", size_text(number_of(a, "peak"))));
    }
    table_print_and_destroy(t);
}

static int run_memory(struct client *c, int argc, char **argv)
{
    json_t *result, *pool;
    size_t i;
    int status, n = args_parse(&verb_memory, argc, argv, NULL, 0);

    if (n != 0)
        return wrong_usage(&verb_memory, n, "memory takes no argument");
    status = call_or_print(c, "memory.report", NULL, NULL, NULL, &result);
    if (!result)
        return status;
    json_array_foreach(json_object_get(result, "pools"), i, pool)
    {
        print_pool(pool);
    }
    printf("resident set of rnbd: %s; page cache of its models' files: %s\n",
           size_text(number_of(result, "rss")), size_text(number_of(result, "page_cache")));
    json_decref(result);
    return status;
}

static void print_budget(const json_t *result)
{
    const json_t *ram = json_object_get(result, "ram");

    printf("ram: budget %s, used %s, free %s, of %s that the machine has\n",
           size_text(number_of(ram, "budget")), size_text(number_of(ram, "used")),
           size_text(number_of(ram, "free")), size_text(number_of(ram, "capacity")));
}

static int run_budget(struct client *c, int argc, char **argv)
{
    bool force = false, cancel = false;
    const struct arg args[] = {
        {"force", NULL, ARG_FLAG, &force, "unload idle models if that makes it fit"},
        {"cancel", NULL, ARG_FLAG, &cancel,
         "unload idle models, and end what runs and unload its model, if that makes it fit"}};
    json_t *result, *params;
    int status, n = args_parse(&verb_budget, argc, argv, args, ARRAY_LEN(args));

    if (n < 0 || n > 1)
        return wrong_usage(&verb_budget, n, "budget takes ram=SIZE");
    if (n == 0) {
        status = call_or_print(c, "budget.get", NULL, NULL, NULL, &result);
    } else {
        if (strncmp(argv[1], "vram=", 5) == 0) {
            fputs("rnbctl: this rnbd has no device with memory of its own, so there is no vram "
                  "budget\n",
                  stderr);
            return EXIT_REFUSED;
        }
        if (strncmp(argv[1], "ram=", 4) != 0)
            return wrong_usage(&verb_budget, 0,
                               format_text("'%s' is not of the form ram=SIZE", argv[1]));
        params = json_pack("{s:s, s:b, s:b}", "ram", argv[1] + 4, "force", force, "cancel", cancel);
        status = call_or_print(c, "budget.set", params, NULL, NULL, &result);
    }
    if (!result)
        return status;
    print_budget(result);
    json_decref(result);
    return status;
}
