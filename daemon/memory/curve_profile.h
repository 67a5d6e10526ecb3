/*
 * curve_profile - what a curve has learnt, small enough to keep: the share of
 * the uses that a quota of each size would hit, all sampled layers together, half
 * way between the run that was noted, which began with nothing, and one that has
 * warmed up (curve_warm_rate): of what was there a new prompt has taken some.  One
 * file per model in the state folder, written when the model leaves, so that a plan
 * knows its routing.
 *
 * Thread: ENGINE.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "daemon/memory/curve.h"

#define CURVE_PROFILE_TOKENS 16 /* fewer say nothing */

struct curve_profile {
    unsigned n_experts;
    double tokens; /* behind it, decayed */
    double *hits;  /* [n_experts + 1] by quota */
};

/* False, and nothing to clear, when too little was noted. */
bool curve_profile_make(const struct curve *c, struct curve_profile *ret);
void curve_profile_clear(struct curve_profile *p);
/* quota: slots of a layer, on average. */
double curve_profile_hits(const struct curve_profile *p, double quota);

/* key: of the model; a state folder that cannot be written is not an error. */
void curve_profile_save(const struct curve_profile *p, const char *dir, const char *key);
/* False when nothing is kept, or for another number of experts. */
bool curve_profile_load(const char *dir, const char *key, unsigned n_experts,
                        struct curve_profile *ret);
