/* show, plan: what a file says, and what it would take. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/cmd.h"
#include "common/alloc.h"

static int run_show(struct client *c, int argc, char **argv);
static int run_plan(struct client *c, int argc, char **argv);

const struct verb verb_show = {"show", "NAME|FILE [--tensors] [--template]",
                               "metadata, tensors and template of a model", "model.show", run_show};
const struct verb verb_plan = {"plan", "FILE|NAME [--ctx N] [--kv TYPE] [--ram SIZE]",
                               "will it fit, where each byte goes, and how fast will it be",
                               "model.plan", run_plan};

/* Long values are for --json; people want to see what is there. */
static void print_value(const char *key, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY);

    printf("  %-44s %.120s%s\n", key, text, strlen(text) > 120 ? " …" : "");
    free(text);
}

static void print_tensors(const json_t *list)
{
    static const char *const heads[] = {"TENSOR", "TYPE", ">SHAPE", ">BYTES"};
    struct table *t = table_create(heads, ARRAY_LEN(heads));
    size_t i, j;
    json_t *tensor, *dim;

    json_array_foreach(list, i, tensor)
    {
        char shape[96] = ">";

        json_array_foreach(json_object_get(tensor, "dims"), j, dim)
        {
            size_t len = strlen(shape);

            snprintf(shape + len, sizeof shape - len, "%s%lld", j ? " x " : "",
                     (long long)json_integer_value(dim));
        }
        table_row(t, text_of(tensor, "name"), text_of(tensor, "type"), shape,
                  format_text(">%s", size_text(number_of(tensor, "bytes"))));
    }
    table_print_and_destroy(t);
}

/* A list of texts under a heading; nothing when there is none. */
static void print_list(const char *heading, const json_t *list)
{
    size_t i;
    json_t *text;

    if (json_array_size(list))
        printf("%s\n", heading);
    json_array_foreach(list, i, text)
    {
        fputs("  ", stdout);
        print_text(json_string_value(text), true);
        putchar('\n');
    }
}

/* What the numbers mean together. */
static void print_summary(const json_t *s)
{
    const char *type;
    json_t *bytes, *run;
    size_t i;

    puts("layers:");
    json_array_foreach(json_object_get(s, "layers"), i, run)
    {
        printf("  %.0f-%.0f  %s\n", number_of(run, "from"), number_of(run, "to"),
               text_of(run, "kind"));
    }
    puts("weights:");
    json_object_foreach(json_object_get(s, "types"), type, bytes)
    {
        printf("  %-8s %12s\n", type, size_text(json_number_value(bytes)));
    }
    print_list("suspicious:", json_object_get(s, "suspicious"));
    print_list("tensors that rnbd does not use:", json_object_get(s, "unused_tensors"));
}

static int run_show(struct client *c, int argc, char **argv)
{
    bool tensors = false, template = false;
    const struct arg args[] = {{"tensors", NULL, ARG_FLAG, &tensors, "list every tensor"},
                               {"template", NULL, ARG_FLAG, &template, "print the chat template"}};
    const char *key;
    json_t *s, *value;
    char *target;
    int status, n = args_parse(&verb_show, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_show, n, "show takes one file or name");
    target = args_target(argv[1]);
    status = call_or_print(c, "model.show", json_pack("{s:s}", "target", target), NULL, NULL, &s);
    free(target);
    if (!s)
        return status;
    if (template) {
        if (c->tty)
            print_text(text_of(s, "chat_template"), false);
        else
            fputs(text_of(s, "chat_template"), stdout);
        putchar('\n');
    } else {
        json_object_foreach(s, key, value)
        {
            if (!json_is_object(value) && !json_is_array(value) &&
                strcmp(key, "chat_template") != 0)
                print_value(key, value);
        }
        print_summary(s);
        puts("metadata:");
        json_object_foreach(json_object_get(s, "metadata"), key, value)
        {
            print_value(key, value);
        }
        if (tensors)
            print_tensors(json_object_get(s, "tensors"));
    }
    json_decref(s);
    return status;
}

static void print_side(const char *what, const json_t *side)
{
    if (json_is_object(side))
        printf("%s about %.2f tok/s, limited by %s\n", what, number_of(side, "tokens_per_second"),
               text_of(side, "limit"));
}

/* Where the hit rate is from, in words. */
static const char *routing_text(const json_t *speed)
{
    const char *from = text_of(speed, "hit_rate_from");

    if (strcmp(from, "running") == 0 || strcmp(from, "recorded") == 0)
        return format_text("by the %s curve of this model, %.0f tokens", from,
                           number_of(speed, "hit_rate_tokens"));
    return "as if routing were even";
}

/* How fast, and what a token takes from where. */
static void print_speed(const char *mode, const json_t *speed)
{
    const json_t *token = json_object_get(speed, "per_token");

    printf("mode %s; a token at %.0f takes %s of resident weights, %s of keys and values", mode,
           number_of(speed, "depth"), size_text(number_of(token, "resident")),
           size_text(number_of(token, "kv")));
    if (number_of(token, "streamed") > 0)
        printf(", %s that stream", size_text(number_of(token, "streamed")));
    if (number_of(token, "expert_hits") + number_of(token, "expert_misses") > 0)
        printf(", %s of experts that are there, %s that are read",
               size_text(number_of(token, "expert_hits")),
               size_text(number_of(token, "expert_misses")));
    putchar('\n');
    if (json_object_get(speed, "hit_rate"))
        printf("experts hit %.1f %% (%s)\n", 100 * number_of(speed, "hit_rate"),
               routing_text(speed));
    print_side("decode", json_object_get(speed, "decode"));
    print_side("prefill", json_object_get(speed, "prefill"));
    if (json_is_true(json_object_get(speed, "measured_now")))
        puts("what this machine can do was measured for it just now, and is kept");
    if (*text_of(speed, "why"))
        printf("no speed can be told: %s\n", text_of(speed, "why"));
}

static int run_plan(struct client *c, int argc, char **argv)
{
    const char *ram = NULL, *vram = NULL, *kv = NULL;
    int64_t ctx = 0;
    const struct arg args[] = {
        {"ctx", "N", ARG_INT, &ctx, "context in tokens"},
        {"kv", "TYPE", ARG_TEXT, &kv, "type of the KV cache: f16, q8_0 or q4_0"},
        {"ram", "SIZE", ARG_TEXT, &ram, "plan for this budget instead of the present one"},
        {"vram", "SIZE", ARG_TEXT, &vram, "device memory; this rnbd has no such device"}};
    const char *name;
    json_t *p, *params, *bytes;
    char *target;
    int status, n = args_parse(&verb_plan, argc, argv, args, ARRAY_LEN(args));

    if (n != 1)
        return wrong_usage(&verb_plan, n, "plan takes one file or name");
    if (vram) {
        fputs("rnbctl: this rnbd has no device with memory of its own, so --vram has no meaning\n",
              stderr);
        return EXIT_REFUSED;
    }
    target = args_target(argv[1]);
    params = json_pack("{s:s, s:s*, s:s*}", "target", target, "kv", kv, "ram", ram);
    free(target);
    if (ctx)
        json_object_set_new(params, "ctx", json_integer(ctx));
    status = call_or_print(c, "model.plan", params, NULL, NULL, &p);
    if (!p)
        return status;
    printf("%s at context %.0f%s: %s\n", argv[1], number_of(p, "n_ctx"),
           json_is_true(json_object_get(p, "ctx_capped")) ? " (as much as fits)" : "",
           json_is_true(json_object_get(p, "fits")) ? "fits" : "does not fit");
    json_object_foreach(json_object_get(p, "accounts"), name, bytes)
    {
        if (json_number_value(bytes) > 0)
            printf("  %-12s %12s\n", name, size_text(json_number_value(bytes)));
    }
    printf("  %-12s %12s\n  %-12s %12s\n  %-12s %12s\n  %-12s %12s\n", "ready",
           size_text(number_of(p, "total")), "while loading", size_text(number_of(p, "peak")),
           "floor", size_text(number_of(p, "floor")), "free", size_text(number_of(p, "free")));
    print_speed(text_of(p, "mode"), json_object_get(p, "speed"));
    if (*text_of(p, "advice"))
        printf("%s\n", text_of(p, "advice"));
    json_decref(p);
    return status;
}
