/* Ghost lists of experts and the curve they give.  See curve.h. */

#include "daemon/memory/curve.h"

#include <math.h>
#include <stdlib.h>

#include "common/alloc.h"

#define WEIGHT_MAX 1e9 /* above, all counts are scaled down */

/* The ghost list of one sampled layer. */
struct ghost {
    unsigned layer;
    unsigned n;      /* experts */
    unsigned n_seen; /* of them in the list */
    uint16_t *list;  /* ids by place */
    uint16_t *place; /* by id; n: not in the list */
    double *uses;    /* [n + 1] by place, weighted; the last: uses that were the first ever */
    double *firsts;  /* [n + 1] by how many were in the list before */
    double all_uses;
    double tokens;  /* noted, weighted as uses are */
    double weight;  /* of a use now: grows instead of all others fading */
    uint64_t token; /* noted last */
    uint16_t *pool; /* scratch: best last */
    bool *chosen;   /* scratch: by id */
};

struct curve {
    struct policy_layer *layers;
    unsigned n_layers;
    unsigned *quotas; /* scratch */
    unsigned n_ghosts;
    struct ghost ghosts[CURVE_LAYERS];
};

struct curve *curve_create(const struct policy_layer *layers, unsigned n_layers)
{
    struct curve *c = XNEW(struct curve);

    c->n_layers = n_layers;
    c->layers = xmemdup(layers, n_layers * sizeof *layers);
    c->quotas = XNEW_ARRAY(unsigned, MAX(n_layers, 1));
    c->n_ghosts = MIN(n_layers, CURVE_LAYERS);
    for (unsigned i = 0; i < c->n_ghosts; i++) {
        struct ghost *g = &c->ghosts[i];

        g->layer = (unsigned)((uint64_t)i * n_layers / c->n_ghosts);
        g->n = layers[g->layer].n_experts;
        g->weight = 1;
        g->list = XNEW_ARRAY(uint16_t, g->n + 1);
        g->place = XNEW_ARRAY(uint16_t, g->n + 1);
        g->pool = XNEW_ARRAY(uint16_t, g->n + 1);
        g->chosen = XNEW_ARRAY(bool, g->n + 1);
        g->uses = XNEW_ARRAY(double, g->n + 1);
        g->firsts = XNEW_ARRAY(double, g->n + 1);
        for (unsigned e = 0; e < g->n; e++)
            g->place[e] = (uint16_t)g->n;
    }
    return c;
}

size_t curve_bytes(unsigned n_layers, unsigned most_experts)
{
    const struct ghost *g = NULL;
    size_t ids = sizeof *g->list + sizeof *g->place + sizeof *g->pool + sizeof *g->chosen;

    return sizeof(struct curve) + n_layers * (sizeof(struct policy_layer) + sizeof(unsigned)) +
           (size_t)MIN(n_layers, CURVE_LAYERS) * (most_experts + 1) *
               (ids + sizeof *g->uses + sizeof *g->firsts);
}

void curve_destroy(struct curve *c)
{
    if (!c)
        return;
    for (unsigned i = 0; i < c->n_ghosts; i++) {
        free(c->ghosts[i].list);
        free(c->ghosts[i].place);
        free(c->ghosts[i].pool);
        free(c->ghosts[i].chosen);
        free(c->ghosts[i].uses);
        free(c->ghosts[i].firsts);
    }
    free(c->layers);
    free(c->quotas);
    free(c);
}

static void age(struct ghost *g, uint64_t token)
{
    if (g->token && token > g->token)
        g->weight *= exp2((double)(token - g->token) / CURVE_HALF_LIFE);
    g->token = token;
    if (g->weight <= WEIGHT_MAX)
        return;
    for (unsigned p = 0; p <= g->n; p++) {
        g->uses[p] /= g->weight;
        g->firsts[p] /= g->weight;
    }
    g->all_uses /= g->weight;
    g->tokens /= g->weight;
    g->weight = 1;
}

/* Into the pool, which is sorted, best last. */
static unsigned pool_add(struct ghost *g, unsigned n_pool, uint16_t id,
                         const struct policy_expert *experts, uint64_t token)
{
    unsigned at = n_pool;

    for (; at && policy_less(&experts[id], &experts[g->pool[at - 1]], token); at--)
        g->pool[at] = g->pool[at - 1];
    g->pool[at] = id;
    return n_pool + 1;
}

/*
 * What a cache of q keeps after this token is the best q of what it held and of
 * the chosen; by how much q + 1 keeps more is the next place of the list.  So one
 * pass: at each place the pool of those not yet placed (the chosen, at first)
 * gains who stood there and gives away its best.
 */
static void restack(struct ghost *g, const struct policy_expert *experts, uint64_t token,
                    unsigned n_pool)
{
    for (unsigned q = 0; n_pool; q++) {
        if (q < g->n_seen && !g->chosen[g->list[q]])
            n_pool = pool_add(g, n_pool, g->list[q], experts, token);
        n_pool--;
        g->list[q] = g->pool[n_pool];
        g->place[g->list[q]] = (uint16_t)q;
        g->n_seen = MAX(g->n_seen, q + 1);
    }
}

static void note(struct ghost *g, const struct policy_expert *experts, const int32_t *ids,
                 unsigned n, uint64_t token, bool all_there)
{
    unsigned n_pool = 0, n_seen = g->n_seen;

    age(g, token);
    g->tokens += g->weight;
    for (unsigned i = 0; i < n; i++) {
        if (ids[i] < 0 || (unsigned)ids[i] >= g->n || g->chosen[ids[i]])
            continue;
        g->chosen[ids[i]] = true;
        if (g->place[ids[i]] == g->n)
            g->firsts[n_seen++] += g->weight;
        if (!all_there || g->place[ids[i]] < g->n) {
            g->uses[g->place[ids[i]]] += g->weight;
            g->all_uses += g->weight;
        }
        n_pool = pool_add(g, n_pool, (uint16_t)ids[i], experts, token);
    }
    restack(g, experts, token, n_pool);
    for (unsigned i = 0; i < n; i++)
        if (ids[i] >= 0 && (unsigned)ids[i] < g->n)
            g->chosen[ids[i]] = false;
}

void curve_note(struct curve *c, unsigned layer, const struct policy_expert *experts,
                const int32_t *ids, unsigned n, uint64_t token, bool all_there)
{
    for (unsigned i = 0; i < c->n_ghosts; i++)
        if (c->ghosts[i].layer == layer)
            note(&c->ghosts[i], experts, ids, n, token, all_there);
}

double curve_hit_rate(const struct curve *c, const unsigned *quotas)
{
    double hits = 0, all = 0;

    for (unsigned i = 0; i < c->n_ghosts; i++) {
        const struct ghost *g = &c->ghosts[i];

        for (unsigned p = 0; p < MIN(quotas[g->layer], g->n); p++)
            hits += g->uses[p] / g->weight;
        all += g->all_uses / g->weight;
    }
    return all > 0 ? fmin(hits / all, 1) : -1; /* sums are rounded */
}

double curve_quota_rate(const struct curve *c, unsigned quota)
{
    for (unsigned i = 0; i < c->n_layers; i++)
        c->quotas[i] = quota;
    return curve_hit_rate(c, c->quotas);
}

double curve_warm_rate(const struct curve *c, unsigned quota)
{
    double hits = 0, all = 0;

    for (unsigned i = 0; i < c->n_ghosts; i++) {
        const struct ghost *g = &c->ghosts[i];

        for (unsigned p = 0; p < g->n; p++) {
            double uses = (g->uses[p] + g->firsts[p]) / g->weight;

            all += uses;
            hits += p < quota ? uses : 0;
        }
    }
    return all > 0 ? fmin(hits / all, 1) : -1;
}

unsigned curve_most_experts(const struct curve *c)
{
    unsigned most = 0;

    for (unsigned i = 0; i < c->n_layers; i++)
        most = MAX(most, c->layers[i].n_experts);
    return most;
}

double curve_tokens(const struct curve *c)
{
    return c->n_ghosts ? c->ghosts[0].tokens / c->ghosts[0].weight : 0;
}

int curve_points(const struct curve *c, size_t bytes, struct curve_point ret[CURVE_POINTS])
{
    static const double factors[CURVE_POINTS] = {0.5, 1, 1.5, 2, 4};
    size_t most = 0;

    if (curve_tokens(c) <= 0)
        return 0;
    for (unsigned i = 0; i < c->n_layers; i++)
        most += c->layers[i].n_experts * c->layers[i].slot_bytes;
    for (int i = 0; i < CURVE_POINTS; i++) {
        ret[i].factor = factors[i];
        ret[i].bytes = (size_t)fmin((double)bytes * factors[i], (double)most);
        ret[i].slots = policy_quotas(c->layers, c->n_layers, ret[i].bytes, c->quotas);
        ret[i].hit_rate = curve_hit_rate(c, c->quotas);
    }
    return CURVE_POINTS;
}
