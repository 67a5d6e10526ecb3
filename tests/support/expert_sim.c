/* See expert_sim.h. */
#include "tests/support/expert_sim.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"

static uint64_t next_random(uint64_t *s)
{
    *s ^= *s << 13;
    *s ^= *s >> 7;
    *s ^= *s << 17;
    return *s * 0x2545f4914f6cdd1dULL;
}

static double uniform(uint64_t *s)
{
    return (double)(next_random(s) >> 11) * 0x1p-53;
}

static void shuffle(uint16_t *order, unsigned n, uint64_t *s)
{
    for (unsigned i = 0; i < n; i++)
        order[i] = (uint16_t)i;
    for (unsigned i = n; i > 1; i--) {
        unsigned j = (unsigned)(next_random(s) % i);
        uint16_t x = order[i - 1];

        order[i - 1] = order[j];
        order[j] = x;
    }
}

struct invention {
    double reuse;
    double *reach; /* cumulated Zipf weights */
    unsigned n_experts, n_used;
    uint64_t seed;
};

/* before: the choice of the token before in that layer, or NULL. */
static void choose(struct invention *v, const uint16_t *order, const uint16_t *before,
                   uint16_t *ids)
{
    for (unsigned i = 0; i < v->n_used; i++) {
        bool again = before && uniform(&v->seed) < v->reuse;
        bool taken = true;

        while (taken) {
            unsigned id;

            if (again) {
                id = before[i];
            } else {
                double x = uniform(&v->seed) * v->reach[v->n_experts - 1];
                unsigned rank = 0;

                while (rank + 1 < v->n_experts && v->reach[rank] < x)
                    rank++;
                id = order[rank];
            }
            taken = false;
            for (unsigned j = 0; j < i; j++)
                taken |= ids[j] == id;
            again = false;
            ids[i] = (uint16_t)id;
        }
    }
}

void expert_sim_invent(char kind, unsigned n_layers, unsigned n_experts, unsigned n_used,
                       size_t n_tokens, uint64_t seed, struct trace *ret)
{
    static const struct {
        char kind;
        double reuse, zipf;
        size_t redraw;
    } kinds[] = {{'u', 0, 0, 0}, {'l', 0.6, 0.8, 0}, {'d', 0.6, 0.8, 256}, {'n', 0.05, 0.1, 0}};
    struct invention v = {.n_experts = n_experts, .n_used = n_used, .seed = seed | 1};
    uint16_t *orders = XNEW_ARRAY(uint16_t, (size_t)n_layers * n_experts);
    size_t record = (size_t)n_layers * n_used;
    size_t redraw = 0;
    double zipf = 0, sum = 0;

    for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
        if (kinds[i].kind == kind) {
            v.reuse = kinds[i].reuse;
            zipf = kinds[i].zipf;
            redraw = kinds[i].redraw;
        }
    v.reach = XNEW_ARRAY(double, n_experts);
    for (unsigned i = 0; i < n_experts; i++)
        v.reach[i] = sum += pow(i + 1, -zipf);
    *ret = (struct trace){.shape = {n_layers, n_experts, n_used, "invented"}, .n_tokens = n_tokens};
    ret->prefill = xcalloc(n_tokens, 1);
    ret->ids = xcalloc(n_tokens, record * sizeof *ret->ids);
    for (size_t t = 0; t < n_tokens; t++)
        for (unsigned l = 0; l < n_layers; l++) {
            uint16_t *order = orders + (size_t)l * n_experts;
            uint16_t *ids = ret->ids + t * record + (size_t)l * n_used;

            if (t == 0 || (redraw && t % redraw == 0))
                shuffle(order, n_experts, &v.seed);
            choose(&v, order, t ? ids - record : NULL, ids);
        }
    free(v.reach);
    free(orders);
}

static unsigned oldest(const struct policy_expert *layer, unsigned n, unsigned *ret_id)
{
    const struct policy_expert *worst = NULL;

    for (unsigned e = 0; e < n; e++)
        if (layer[e].resident && (!worst || layer[e].last_token < worst->last_token))
            worst = &layer[e];
    if (worst)
        *ret_id = (unsigned)(worst - layer);
    return worst != NULL;
}

/* One layer's choice: hits are counted, misses come in, the worst go until the quota holds. */
static unsigned step(struct policy_expert *layer, unsigned n_experts, const uint16_t *ids,
                     unsigned n_used, unsigned quota, unsigned *n_resident, uint64_t token,
                     enum expert_sim_order order)
{
    unsigned hits = 0, victim;

    for (unsigned i = 0; i < n_used; i++) {
        struct policy_expert *e = &layer[ids[i]];

        hits += e->resident;
        *n_resident += !e->resident;
        e->resident = true;
        policy_use(e, token);
    }
    while (*n_resident > quota &&
           (order == EXPERT_SIM_LRU ? oldest(layer, n_experts, &victim)
                                    : policy_victims(layer, n_experts, token, 1, &victim))) {
        layer[victim].resident = false;
        --*n_resident;
    }
    return hits;
}

double expert_sim_run(const struct trace *t, size_t n_slots, size_t n_warm,
                      enum expert_sim_order order, struct curve *curve)
{
    unsigned n_layers = t->shape.n_layers, n_experts = t->shape.n_experts;
    struct policy_expert *experts = XNEW_ARRAY(struct policy_expert, (size_t)n_layers * n_experts);
    struct policy_layer *layers = XNEW_ARRAY(struct policy_layer, n_layers);
    unsigned *quotas = XNEW_ARRAY(unsigned, n_layers);
    unsigned *n_resident = XNEW_ARRAY(unsigned, n_layers);
    int32_t *ids = XNEW_ARRAY(int32_t, t->shape.n_used);
    size_t hits = 0, uses = 0;

    for (unsigned l = 0; l < n_layers; l++)
        layers[l] = (struct policy_layer){n_experts, t->shape.n_used, 1};
    policy_quotas(layers, n_layers, n_slots, quotas);
    for (size_t k = 0; k < t->n_tokens; k++)
        for (unsigned l = 0; !t->prefill[k] && l < n_layers; l++) {
            const uint16_t *chosen = trace_ids(t, k, l);
            unsigned n = 0, got;

            while (n < t->shape.n_used && chosen[n] != TRACE_NONE)
                ids[n] = chosen[n], n++;
            got = step(experts + (size_t)l * n_experts, n_experts, chosen, n, quotas[l],
                       &n_resident[l], k + 1, order);
            if (k >= n_warm) {
                hits += got;
                uses += n;
            }
            if (curve)
                curve_note(curve, l, experts + (size_t)l * n_experts, ids, n, k + 1, false);
        }
    free(ids);
    free(n_resident);
    free(quotas);
    free(layers);
    free(experts);
    return uses ? (double)hits / (double)uses : 0;
}
