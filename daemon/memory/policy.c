/* The order of experts, and quotas.  See policy.h. */

#include "daemon/memory/policy.h"

#include <math.h>

#include "common/alloc.h"

/* Decode's uses within this many tokens are safe from prefill. */
#define RECENT_TOKENS 64
/* What a chunk of prefill adds at most: half of one use by decode. */
#define PREFILL_HEAT 0.5

static double score_of(const struct policy_expert *e)
{
    return e->uses ? e->score : -INFINITY;
}

double policy_heat(const struct policy_expert *e, uint64_t token)
{
    return exp2(score_of(e) - (double)token / POLICY_HALF_LIFE);
}

static void heat_up(struct policy_expert *e, uint64_t token, double by)
{
    e->score = log2(policy_heat(e, token) + by) + (double)token / POLICY_HALF_LIFE;
    e->uses += e->uses < UINT32_MAX;
}

void policy_use(struct policy_expert *e, uint64_t token)
{
    heat_up(e, token, 1.0);
    e->last_token = token;
}

void policy_use_prefill(struct policy_expert *e, uint64_t token, double share)
{
    if (share > 0)
        heat_up(e, token, PREFILL_HEAT * fmin(share, 1.0));
}

bool policy_less(const struct policy_expert *a, const struct policy_expert *b, uint64_t token)
{
    bool last_a = a->last_token == token;
    bool last_b = b->last_token == token;
    double score_a = score_of(a), score_b = score_of(b);

    if (last_a != last_b)
        return last_b;
    if (score_a != score_b)
        return score_a < score_b;
    if (a->last_token != b->last_token)
        return a->last_token < b->last_token;
    return a > b;
}

/* The n worst so far are kept sorted: n is a token's choice, so this is one pass with few moves. */
unsigned policy_victims(const struct policy_expert *layer, unsigned n_experts, uint64_t token,
                        unsigned n_wanted, unsigned *ret_ids)
{
    unsigned n = 0;

    for (unsigned e = 0; e < n_experts && n_wanted; e++) {
        unsigned at = n;

        if (!layer[e].resident || layer[e].pins)
            continue;
        while (at && policy_less(&layer[e], &layer[ret_ids[at - 1]], token))
            at--;
        if (at == n_wanted)
            continue;
        n = MIN(n + 1, n_wanted);
        for (unsigned i = n - 1; i > at; i--)
            ret_ids[i] = ret_ids[i - 1];
        ret_ids[at] = e;
    }
    return n;
}

bool policy_prefill_may_evict(const struct policy_expert *candidate,
                              const struct policy_expert *victim, uint64_t token)
{
    if (victim->pins || (victim->last_token && token - victim->last_token < RECENT_TOKENS))
        return false;
    return score_of(victim) < score_of(candidate);
}

size_t policy_quotas(const struct policy_layer *layers, unsigned n_layers, size_t bytes,
                     unsigned *ret_quotas)
{
    double all = 0;
    double share;
    size_t left = bytes;
    size_t slots = 0;
    bool gave = true;

    for (unsigned i = 0; i < n_layers; i++)
        all += (double)layers[i].n_experts * (double)layers[i].slot_bytes;
    share = all > 0 ? fmin((double)bytes / all, 1.0) : 0;
    for (unsigned i = 0; i < n_layers; i++) {
        size_t n = (size_t)(share * layers[i].n_experts);

        /* the sum was rounded as a double may be: never hand out what is not there */
        if (layers[i].slot_bytes)
            n = MIN(n, left / layers[i].slot_bytes);
        ret_quotas[i] = (unsigned)n;
        left -= n * layers[i].slot_bytes;
        slots += n;
    }
    while (gave) {
        gave = false;
        for (unsigned i = 0; i < n_layers; i++)
            if (ret_quotas[i] < layers[i].n_experts && layers[i].slot_bytes &&
                layers[i].slot_bytes <= left) {
                ret_quotas[i]++;
                left -= layers[i].slot_bytes;
                slots++;
                gave = true;
            }
    }
    return slots;
}
