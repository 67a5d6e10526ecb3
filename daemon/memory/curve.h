/*
 * curve - what the hit rate would be with another size of cache, learnt while
 * decoding (a miss-ratio curve).
 *
 * The policy keeps the best q of a layer by an order that does not depend on q,
 * so what a cache of q slots holds is part of what one of q + 1 holds.  A ghost
 * list per layer (expert ids alone, no bytes) keeps every expert at the least
 * quota that would hold it; a use at place p is a hit for all quotas ≥ p.
 * Mattson, Gecsei, Slutz, Traiger 1970, for a set of uses at a time.  At most
 * CURVE_LAYERS layers are sampled, spread evenly; counts halve every
 * CURVE_HALF_LIFE tokens.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdint.h>

#include "daemon/memory/policy.h"

#define CURVE_LAYERS    16u
#define CURVE_HALF_LIFE 1024.0

struct curve;

struct curve *curve_create(const struct policy_layer *layers, unsigned n_layers);
void curve_destroy(struct curve *c);

/*
 * A token of decode chose these n distinct experts of a layer; after policy_use on each of them.
 * all_there: nobody missed them, so that the first use of one says nothing.
 */
void curve_note(struct curve *c, unsigned layer, const struct policy_expert *experts,
                const int32_t *ids, unsigned n, uint64_t token, bool all_there);

/* Bytes of a curve, at most. */
size_t curve_bytes(unsigned n_layers, unsigned most_experts);

/* Share of the uses that would hit with these quotas (one per layer); −1: nothing noted yet. */
double curve_hit_rate(const struct curve *c, const unsigned *quotas);
/* The same with one quota for all layers. */
double curve_quota_rate(const struct curve *c, unsigned quota);
/*
 * The same of a model that has warmed up.  A first use ever is a miss of the run that
 * was noted.  Later it would be one of an expert that stands behind those that had
 * been used before it: a hit where more than these have a slot.
 */
double curve_warm_rate(const struct curve *c, unsigned quota);
/* Experts of the widest layer. */
unsigned curve_most_experts(const struct curve *c);
/* How many tokens stand behind it, decayed. */
double curve_tokens(const struct curve *c);

/* One point of `cache --curve`. */
struct curve_point {
    double factor; /* of the present cache */
    size_t bytes, slots;
    double hit_rate;
};
#define CURVE_POINTS 5
/* 0.5, 1, 1.5, 2 and 4 times bytes, cut to what all experts need.  Returns CURVE_POINTS, 0 when nothing was noted. */
int curve_points(const struct curve *c, size_t bytes, struct curve_point ret[CURVE_POINTS]);
