/* verify: a whole file read: digests, and what is wrong with it. */
#include <stdio.h>
#include <stdlib.h>

#include "client/cmd.h"

static int run_verify(struct client *c, int argc, char **argv);

const struct verb verb_verify = {"verify", "FILE|NAME",
                                 "read every byte of a model: SHA-256, structure, broken values",
                                 "model.verify", run_verify};

static void print_report(const json_t *result)
{
    json_t *part, *sentence;
    size_t i;

    json_array_foreach(json_object_get(result, "parts"), i, part)
    {
        printf("%s  ", text_of(part, "sha256"));
        print_text(text_of(part, "path"), true);
        putchar('\n');
    }
    json_array_foreach(json_object_get(result, "findings"), i, sentence)
    {
        print_text(json_string_value(sentence), true);
        putchar('\n');
    }
    if (number_of(result, "n_findings") > (double)i)
        printf("and %.0f more\n", number_of(result, "n_findings") - (double)i);
    if (json_is_true(json_object_get(result, "sound")))
        printf("sound: %.0f tensors, %s\n", number_of(result, "n_tensors"),
               size_text(number_of(result, "bytes")));
}

static int run_verify(struct client *c, int argc, char **argv)
{
    struct load_progress progress = {.client = c};
    int r, n = args_parse(&verb_verify, argc, argv, NULL, 0);
    json_t *result = NULL;
    bool sound;
    char *target;
    struct err err;

    if (n != 1)
        return wrong_usage(&verb_verify, n, "verify takes one file or name");
    target = args_target(argv[1]);
    r = call_method(c, "model.verify", json_pack("{s:s}", "target", target), load_notify, &progress,
                    &result, &err);
    free(target);
    progress_end(c, &progress.bar);
    if (r < 0)
        return print_error(&err);
    if (c->json)
        print_json(result);
    else
        print_report(result);
    sound = json_is_true(json_object_get(result, "sound"));
    json_decref(result);
    return sound ? EXIT_OK : EXIT_REFUSED;
}
