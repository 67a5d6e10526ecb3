/* help, complete: verbs, methods, and words for the shells. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_help(struct client *c, int argc, char **argv);
static int run_complete(struct client *c, int argc, char **argv);

const struct verb verb_help = {"help", "[VERB] | --json [METHOD]",
                               "what a verb or an RPC method takes", "", run_help};
const struct verb verb_complete = {"complete", "verbs | models",
                                   "words for the completion of a shell", "", run_complete};

static const struct {
    const char *name, *params, *result, *help;
} methods[] = {
#define METHOD(name, cname, params, result, help) {name, params, result, help},
#include "common/methods.def"
#undef METHOD
};

/* "name?:type" words → {"name": {"type": …, "optional": …}} */
static json_t *params_schema(const char *spec)
{
    json_t *o = json_object();
    char *copy = xstrdup(strcmp(spec, "-") == 0 ? "" : spec), *save = NULL;

    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        char *colon = strchr(word, ':');
        bool optional = colon && colon > word && colon[-1] == '?';

        if (!colon)
            continue;
        colon[optional ? -1 : 0] = '\0';
        json_object_set_new(o, word,
                            json_pack("{s:s, s:b}", "type", colon + 1, "optional", optional));
    }
    free(copy);
    return o;
}

static int print_methods(const char *only)
{
    json_t *list = json_array();
    bool found = false;

    for (size_t i = 0; i < ARRAY_LEN(methods); i++)
        if (!only || strcmp(only, methods[i].name) == 0) {
            found = true;
            json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s}", "method", methods[i].name,
                                                  "help", methods[i].help, "params",
                                                  params_schema(methods[i].params), "result",
                                                  methods[i].result));
        }
    if (found)
        print_json(only ? json_array_get(list, 0) : list);
    else
        fprintf(stderr, "rnbctl: there is no method '%s'; rnbctl help --json lists them\n", only);
    json_decref(list);
    return found ? EXIT_OK : EXIT_REFUSED;
}

static int run_help(struct client *c, int argc, char **argv)
{
    bool json = c->json;
    const struct arg args[] = {
        {"json", NULL, ARG_FLAG, &json, "the methods of the control socket, as JSON"}};
    char help_option[] = "--help";
    const struct verb *v;
    int n = args_parse(&verb_help, argc, argv, args, ARRAY_LEN(args));

    if (n < 0 || n > 1)
        return wrong_usage(&verb_help, n, "help takes one verb or method");
    if (json)
        return print_methods(n ? argv[1] : NULL);
    if (n == 0) {
        size_t n_verbs;
        const struct verb *const *list = verb_list(&n_verbs);

        for (size_t i = 0; i < n_verbs; i++)
            printf("rnbctl %s %s\n    %s\n", list[i]->name, list[i]->synopsis, list[i]->help);
        return EXIT_OK;
    }
    v = verb_find(argv[1]);
    if (!v)
        return wrong_usage(&verb_help, 0, format_text("there is no verb '%s'", argv[1]));
    if (strcmp(v->name, "help") == 0 || strcmp(v->name, "logs") == 0 ||
        strcmp(v->name, "complete") == 0) {
        printf("usage: rnbctl %s %s\n\n%s\n", v->name, v->synopsis, v->help);
        return EXIT_OK;
    }
    /* Each verb prints its own options. */
    return v->run(c, 2, (char *[]){argv[1], help_option, NULL});
}

static int complete_models(struct client *c)
{
    json_t *result = NULL, *m;
    struct err err;
    size_t i;

    /* A shell that completes must not be told about a daemon that is not there. */
    if (call_method(c, "model.list", NULL, NULL, NULL, &result, &err) < 0)
        return EXIT_OK;
    json_array_foreach(json_object_get(result, "models"), i, m)
    {
        puts(text_of(m, "name"));
    }
    json_decref(result);
    return EXIT_OK;
}

static int run_complete(struct client *c, int argc, char **argv)
{
    size_t n_verbs;
    const struct verb *const *list = verb_list(&n_verbs);
    int n = args_parse(&verb_complete, argc, argv, NULL, 0);

    if (n == 1 && strcmp(argv[1], "models") == 0)
        return complete_models(c);
    if (n == 1 && strcmp(argv[1], "verbs") == 0) {
        for (size_t i = 0; i < n_verbs; i++)
            printf("%s:%s\n", list[i]->name, list[i]->help);
        return EXIT_OK;
    }
    return wrong_usage(&verb_complete, n, "complete takes verbs or models");
}
