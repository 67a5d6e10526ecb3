/*
 * Runs traces of expert choices, recorded or invented, through the daemon's
 * policy and prints the hit rate for a list of cache sizes, beside LRU by layer
 * and beside what the online curve predicts from one run.
 *
 *     replay [--slots 122,559,1048] [--staging 8] [--warm 500] [--tokens 1500] [--save FILE]
 *            [TRACE | u | l | d | n]...
 *
 * The invented ones have the shape of streaming-trial.md: 16 layers, 128 experts, 8 used.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "tests/support/expert_sim.h"

#define SIZES_MAX 16

struct options {
    size_t slots[SIZES_MAX];
    size_t n_sizes, staging, warm, tokens;
    const char *save; /* writes the trace there, as the daemon records one, and nothing else */
};

static struct curve *make_curve(const struct trace *t)
{
    struct policy_layer *layers = XNEW_ARRAY(struct policy_layer, t->shape.n_layers);
    struct curve *c;

    for (unsigned l = 0; l < t->shape.n_layers; l++)
        layers[l] = (struct policy_layer){t->shape.n_experts, t->shape.n_used, 1};
    c = curve_create(layers, t->shape.n_layers);
    free(layers);
    return c;
}

/* The point of factor 1 is the size itself. */
static double predicted(const struct curve *c, size_t slots)
{
    struct curve_point points[CURVE_POINTS];

    return curve_points(c, slots, points) ? points[1].hit_rate : 0;
}

static int save(const struct trace *t, const char *path)
{
    int32_t *ids = XNEW_ARRAY(int32_t, t->shape.n_used);
    struct trace_writer *w = NULL;
    struct err err = {0};
    int rc = trace_writer_open(path, &t->shape, &w, &err);

    for (size_t i = 0; i < t->n_tokens && rc >= 0; i++) {
        for (unsigned l = 0; l < t->shape.n_layers; l++) {
            const uint16_t *from = trace_ids(t, i, l);
            unsigned n = 0;

            for (unsigned k = 0; k < t->shape.n_used; k++)
                if (from[k] != TRACE_NONE)
                    ids[n++] = from[k];
            trace_writer_layer(w, l, ids, n);
        }
        rc = trace_writer_token(w, t->prefill[i], &err);
    }
    if (w && rc >= 0)
        rc = trace_writer_close(w, &err);
    if (rc < 0)
        fprintf(stderr, "replay: %s\n", err.text);
    free(ids);
    return rc < 0;
}

static int replay(const char *name, const struct options *o)
{
    struct trace t = {0};
    struct err err = {0};
    struct curve *c;

    if (strlen(name) == 1 && strchr("uldn", *name))
        expert_sim_invent(*name, 16, 128, 8, o->tokens, 20260101, &t);
    else if (trace_read(name, (size_t)1 << 32, &t, &err) < 0) {
        fprintf(stderr, "replay: %s\n", err.text);
        return 1;
    }
    if (o->save) {
        int rc = save(&t, o->save);

        trace_clear(&t);
        return rc;
    }
    c = make_curve(&t);
    printf("%s: %s, %zu tokens, %u layers, %u of %u experts\n", name, t.shape.model, t.n_tokens,
           t.shape.n_layers, t.shape.n_used, t.shape.n_experts);
    printf("%8s %10s %10s %10s\n", "slots", "policy %", "LRU %", "curve %");
    /* the curve learns beside the first size and speaks about all */
    for (size_t i = 0; i < o->n_sizes; i++) {
        size_t slots = o->slots[i] > o->staging ? o->slots[i] - o->staging : 0;
        double policy = expert_sim_run(&t, slots, o->warm, EXPERT_SIM_POLICY, i ? NULL : c);
        double lru = expert_sim_run(&t, slots, o->warm, EXPERT_SIM_LRU, NULL);

        printf("%8zu %10.1f %10.1f %10.1f\n", o->slots[i], 100 * policy, 100 * lru,
               100 * predicted(c, slots));
    }
    curve_destroy(c);
    trace_clear(&t);
    return 0;
}

static void parse_slots(const char *text, struct options *o)
{
    char *end;

    o->n_sizes = 0;
    do
        o->slots[o->n_sizes++] = strtoull(text, &end, 10);
    while (*end == ',' && (text = end + 1) && o->n_sizes < SIZES_MAX);
}

int main(int argc, char **argv)
{
    static const struct option words[] = {
        {"slots", required_argument, NULL, 's'}, {"staging", required_argument, NULL, 'g'},
        {"warm", required_argument, NULL, 'w'},  {"tokens", required_argument, NULL, 't'},
        {"save", required_argument, NULL, 'o'},  {0}};
    struct options o = {
        .slots = {122, 559, 1048}, .n_sizes = 3, .staging = 8, .warm = 500, .tokens = 1500};
    int c, rc = 0;

    while ((c = getopt_long(argc, argv, "", words, NULL)) >= 0)
        switch (c) {
        case 's': parse_slots(optarg, &o); break;
        case 'g': o.staging = strtoull(optarg, NULL, 10); break;
        case 'w': o.warm = strtoull(optarg, NULL, 10); break;
        case 'o': o.save = optarg; break;
        case 't': o.tokens = strtoull(optarg, NULL, 10); break;
        default: return 2;
        }
    if (optind == argc) {
        static const char *const all[] = {"l", "d", "u"};

        for (size_t i = 0; i < ARRAY_LEN(all); i++)
            rc |= replay(all[i], &o);
    }
    for (int i = optind; i < argc; i++)
        rc |= replay(argv[i], &o);
    return rc;
}
