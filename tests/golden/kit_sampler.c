/* Conformance kit, sampler/: probabilities after single steps and after the default chain. */
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/sampling/sampler.h"
#include "tests/golden/kit.h"

#define TOLERANCE 1e-5

/* A step's place in the one chain that the sampler has; a case must name its steps in that order. */
static const char *const order[] = {"penalties", "top_n_sigma", "top_k", "typical_p", "top_p",
                                    "min_p",     "xtc",         "temp",  "dynatemp"};

static int place(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(order); i++)
        if (strcmp(order[i], name) == 0)
            return (int)i;
    return -1;
}

static void set_step(struct sampling_options *o, int step, const json_t *args)
{
    float a[5] = {0};

    for (size_t i = 1; i < json_array_size(args) && i < ARRAY_LEN(a); i++)
        a[i] = (float)json_number_value(json_array_get(args, i));
    switch (step) {
    case 0:
        o->repeat_last_n = (int32_t)a[1];
        o->repeat_penalty = a[2];
        o->frequency_penalty = a[3];
        o->presence_penalty = a[4];
        break;
    case 1: o->top_n_sigma = a[1]; break;
    case 2: o->top_k = (int32_t)a[1]; break;
    case 3: o->typical_p = a[1]; break;
    case 4: o->top_p = a[1]; break;
    case 5: o->min_p = a[1]; break;
    case 6:
        o->xtc_probability = a[1];
        o->xtc_threshold = a[2];
        break;
    case 7: o->temperature = a[1]; break;
    default:
        o->temperature = a[1];
        o->dynatemp_range = a[2];
        o->dynatemp_exponent = a[3];
    }
}

/* Options of the case's chain; false when it is no part of ours. */
static bool options_of(const json_t *chain, struct sampling_options *o)
{
    int last = -1;

    sampling_defaults(o);
    o->temperature = 1;
    o->top_k = 0;
    o->top_p = 1;
    o->min_p = 0;
    for (size_t i = 0; i < json_array_size(chain); i++) {
        const json_t *step = json_array_get(chain, i);
        const char *name = json_string_value(json_array_get(step, 0));
        int at = name ? place(name) : -1;

        if (at <= last)
            return false;
        last = at;
        set_step(o, at, step);
    }
    return true;
}

/* The largest |p − expected|; 1 when the survivors are others. */
static double distance(const json_t *probs, const struct candidate *got, size_t n_got)
{
    double worst = 0;

    if (json_array_size(probs) != n_got)
        return 1;
    for (size_t i = 0; i < n_got; i++) {
        const json_t *pair = json_array_get(probs, i);
        json_int_t id = json_integer_value(json_array_get(pair, 0));
        double p = json_number_value(json_array_get(pair, 1)), off = 1;

        for (size_t k = 0; k < n_got; k++)
            if (got[k].id == id)
                off = fabs((double)got[k].p - p);
        worst = MAX(worst, off);
    }
    return worst;
}

static void run_case(const json_t *root, size_t at, struct kit_result *r)
{
    const json_t *c = json_array_get(json_object_get(root, "cases"), at);
    const char *logits_name = json_string_value(json_object_get(c, "logits"));
    const char *previous_name = json_string_value(json_object_get(c, "previous"));
    const json_t *logits = json_object_get(json_object_get(root, "logits"), logits_name);
    const json_t *previous = json_object_get(json_object_get(root, "previous"), previous_name);
    char *chain = json_dumps(json_object_get(c, "chain"), JSON_COMPACT | JSON_REAL_PRECISION(6));
    size_t n = json_array_size(logits), n_got;
    float *l = XNEW_ARRAY(float, n + 1);
    struct sampling_options o;
    struct sampler *s = NULL;
    const struct candidate *got;
    double off;

    if (n == 0 || !options_of(json_object_get(c, "chain"), &o)) {
        kit_line(r, "sampler", "sampler.json", KIT_FAIL, "case %zu: unknown chain %s", at, chain);
        goto out;
    }
    for (size_t i = 0; i < n; i++)
        l[i] = (float)json_number_value(json_array_get(logits, i));
    s = sampler_create(&o, n, json_array_size(previous));
    for (size_t i = 0; i < json_array_size(previous); i++)
        sampler_accept(s, (int32_t)json_integer_value(json_array_get(previous, i)));
    sampler_choose(s, l);
    got = sampler_survivors(s, &n_got);
    off = distance(json_object_get(c, "probs"), got, n_got);
    kit_line(r, "sampler", "sampler.json", off <= TOLERANCE ? KIT_PASS : KIT_FAIL,
             "case %zu: %s %s %s: %zu kept, max diff %.2g", at, logits_name, previous_name, chain,
             n_got, off);
out:
    sampler_destroy(s);
    free(l);
    free(chain);
}

int kit_sampler(const char *kit_dir, const char *match, struct kit_result *r)
{
    json_t *root;
    size_t n;

    if (!kit_wanted("sampler.json", match))
        return 0;
    root = kit_json(kit_dir, "sampler", "sampler.json");
    if (!root)
        return -ERR_IO;
    n = json_array_size(json_object_get(root, "cases"));
    for (size_t i = 0; i < n; i++)
        run_case(root, i, r);
    json_decref(root);
    return 0;
}
