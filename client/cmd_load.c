/* load, unload: models come and go by hand. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_load(struct client *c, int argc, char **argv);
static int run_unload(struct client *c, int argc, char **argv);

const struct verb verb_load = {
    "load", "FILE|NAME [--name N] [--ctx N] [--kv f16|q8_0|q4_0] [--ttl T] [--pin]",
    "load a model, showing how far it is", "model.load", run_load};
const struct verb verb_unload = {"unload", "NAME [--force]",
                                 "unload a model and give its memory back", "model.unload",
                                 run_unload};

static int run_load(struct client *c, int argc, char **argv)
{
    const char *name = NULL, *kv = NULL, *ttl = NULL;
    int64_t ctx = 0;
    bool pin = false;
    const struct arg args[] = {
        {"name", "NAME", ARG_TEXT, &name, "name to give it (default: the file's name)"},
        {"ctx", "N", ARG_INT, &ctx,
         "context in tokens (default: the file's, as far as the budget allows)"},
        {"kv", "TYPE", ARG_TEXT, &kv, "type of the KV cache: f16, q8_0 or q4_0"},
        {"ttl", "TIME", ARG_TEXT, &ttl,
         "idle time after which it leaves, such as 15m; 0 means it stays"},
        {"pin", NULL, ARG_FLAG, &pin, "it never leaves by itself"},
    };
    struct load_progress progress = {.client = c};
    json_t *params, *m;
    char *target;
    int status, n = args_parse(&verb_load, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_load, n, "load takes one file or name");
    target = args_target(argv[1]);
    params =
        json_pack("{s:s, s:s*, s:s*, s:s*}", "target", target, "name", name, "kv", kv, "ttl", ttl);
    free(target);
    if (ctx)
        json_object_set_new(params, "ctx", json_integer(ctx));
    if (pin)
        json_object_set_new(params, "pin", json_true());
    status = call_or_print(c, "model.load", params, load_notify, &progress, &m);
    progress_end(c, &progress.bar);
    if (!m)
        return status;
    printf("loaded '%s': %s %s, %s resident, %s charged, context %.0f\n", text_of(m, "name"),
           text_of(m, "arch"), text_of(m, "type"), size_text(number_of(m, "resident_bytes")),
           size_text(number_of(m, "charged_bytes")), number_of(m, "n_ctx"));
    json_decref(m);
    return status;
}

static int run_unload(struct client *c, int argc, char **argv)
{
    bool force = false;
    const struct arg args[] = {{"force", NULL, ARG_FLAG, &force, "end what it is generating"}};
    json_t *result;
    int status, n = args_parse(&verb_unload, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_unload, n, "unload takes the name of a model");
    status =
        call_or_print(c, "model.unload", json_pack("{s:s, s:b}", "name", argv[1], "force", force),
                      NULL, NULL, &result);
    if (!result)
        return status;
    printf("unloaded '%s', %s given back\n", argv[1], size_text(number_of(result, "freed")));
    json_decref(result);
    return status;
}
