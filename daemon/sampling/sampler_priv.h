/*
 * sampler_priv - what the files of this room share: the sampler's insides and
 * the list of candidates that the steps narrow down.
 */
#pragma once

#include "daemon/sampling/rng.h"
#include "daemon/sampling/sampler.h"

/*
 * The ids that are still in the running.  Finite logits only.  The first
 * n_sorted are the best, in order; the rest are in any order, but worse.
 */
struct pool_list {
    struct candidate *c;
    size_t n;
    size_t n_sorted;
};

struct sampler {
    struct sampling_options opt;
    size_t n_vocab;
    struct rng rng;
    double mirostat_mu;
    struct pool_list list; /* room for n_vocab */
    float *logits;         /* [n_vocab] the step's own copy, made only when a step changes some */
    double *score;         /* [n_vocab] typical_p's distances; NULL when it is off */
    int32_t *history;      /* the last n_history of cap_history accepted ids, oldest first */
    size_t n_history, cap_history;
    int32_t *counts;  /* [n_vocab] how often in the penalty window */
    uint8_t *breaker; /* [n_vocab] DRY's sequence breakers; NULL when it is off */
    int32_t *repeat;  /* [n_vocab] DRY's longest repeat that an id would go on; 0 between calls */
    int32_t *suffix;  /* [cap_history] DRY's scratch */
};

/* A total order: higher logit first, then lower id. */
static inline bool candidate_before(const struct candidate *a, const struct candidate *b)
{
    return a->logit != b->logit ? a->logit > b->logit : a->id < b->id;
}

/* -- penalties.c: steps that change logits ------------------------------------------- */

bool penalties_on(const struct sampling_options *o);
bool dry_on(const struct sampling_options *o);
void penalties_accept(struct sampler *s, int32_t id);
void penalties_apply(struct sampler *s, float *logits);
void dry_apply(struct sampler *s, float *logits);

/* -- filters.c: steps that narrow the list ------------------------------------------- */

/* The k best of the logits that are ≥ least; k 0: all.  Finite ones only. */
void filter_gather(struct pool_list *l, const float *logits, size_t n_vocab, size_t k, float least);
/* max − n · (population standard deviation) of the finite logits. */
float filter_sigma_least(const float *logits, size_t n_vocab, float n);
void filter_sort(struct pool_list *l, size_t n_best); /* makes at least n_best of them sorted */
void filter_typical(struct pool_list *l, float p, double *score);
void filter_top_p(struct pool_list *l, float p);
void filter_min_p(struct pool_list *l, float p);
void filter_xtc(struct pool_list *l, float threshold);
void filter_temperature(struct pool_list *l, float t);
/* Temperature between t − range and t + range by the entropy of the list. */
void filter_dynatemp(struct pool_list *l, float t, float range, float exponent);
/* Drops what surprises more than mu bits, but never the best. */
void filter_surprise(struct pool_list *l, double mu);
/* Fills in p of every candidate. */
void filter_softmax(struct pool_list *l);
