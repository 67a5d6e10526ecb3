/*
 * sampler - logits to an id.
 *
 * The chain, in this order (kit: sampler/): logit bias, penalties, dry,
 * top_n_sigma, top_k, typical_p, top_p, min_p, xtc, temperature, draw.
 * Mirostat 2 takes the place of top_k … min_p and the draw.  Greedy
 * (temperature 0) is the lowest id among equal logits.
 *
 * The RNG is seeded, small and portable (its state is two words): the same
 * request and seed give the same ids on every machine.
 *
 * Thread: ENGINE; one sampler belongs to one choice of one request.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

struct sampling_bias {
    int32_t id;
    float bias; /* −INFINITY bans */
};

#define SAMPLING_MAX_DRY_BREAKERS 16

/* Plain data: what a request asked for, already complete (defaults filled in). */
struct sampling_options {
    float temperature;    /* ≤ 0: greedy */
    float dynatemp_range; /* 0: off */
    float dynatemp_exponent;
    int32_t top_k;         /* ≤ 0: off */
    float top_p;           /* 1: off */
    float min_p;           /* 0: off */
    float typical_p;       /* 1: off */
    float top_n_sigma;     /* ≤ 0: off */
    float xtc_probability; /* 0: off */
    float xtc_threshold;
    int32_t repeat_last_n; /* −1: the whole context; 0: off */
    float repeat_penalty;  /* 1: off */
    float frequency_penalty;
    float presence_penalty;
    float dry_multiplier; /* 0: off */
    float dry_base;
    int32_t dry_allowed_length;
    int32_t dry_last_n;                            /* −1: the whole context */
    char *dry_breakers[SAMPLING_MAX_DRY_BREAKERS]; /* strings, owned by the request */
    unsigned n_dry_breakers;
    int32_t mirostat; /* 0 or 2 */
    float mirostat_tau;
    float mirostat_eta;
    uint64_t seed;
    struct sampling_bias *bias; /* owned by the request */
    size_t n_bias;
};

/* Temperature 0.8, top_k 40, top_p 0.95, min_p 0.05, all else off, seed 0. */
void sampling_defaults(struct sampling_options *o);
/* Ranges of every field; the error names the field. */
int sampling_check(const struct sampling_options *o, struct err *err);

struct candidate {
    int32_t id;
    float logit;
    float p; /* filled in by the steps that need it */
};

struct sampler;

/*
 * options are copied (their bias array borrowed until destroy).  All scratch is
 * made here, once, and given back by destroy; NULL when the heap has none.
 * n_history: how many accepted ids are looked back on at most (the context).
 */
struct sampler *sampler_create(const struct sampling_options *o, size_t n_vocab, size_t n_history);
/* What sampler_create takes, for the ledger (scratch). */
size_t sampler_bytes(const struct sampling_options *o, size_t n_vocab, size_t n_history);
void sampler_destroy(struct sampler *s);

/* An id that is part of the context now (prompt or chosen): penalties and dry look back on these. */
void sampler_accept(struct sampler *s, int32_t id);
/*
 * DRY's sequence breakers as token ids (every token whose text holds one of
 * the strings), given by who knows the tokenizer.  A repeat never reaches
 * back over one, and one is never penalised.  Wrong ids are passed over.
 */
void sampler_set_dry_breakers(struct sampler *s, const int32_t *ids, size_t n);

/*
 * Chooses from logits[n_vocab]; does not accept.  A NaN counts as −INFINITY
 * and can be chosen only when nothing else is there (then it is id 0).
 */
int32_t sampler_choose(struct sampler *s, const float *logits);

/* The survivors of the last choice with their probabilities, best first (tests, kit). */
const struct candidate *sampler_survivors(struct sampler *s, size_t *ret_n);

/*
 * Log probabilities of the plain softmax of logits: of id, and the n_top most
 * likely (ties by lowest id) into top (id, p = logprob).  n_top ≤ 20.  What
 * cannot occur has SAMPLING_LOGPROB_NEVER, a number that JSON can carry.
 */
#define SAMPLING_MAX_TOP_LOGPROBS 20
#define SAMPLING_LOGPROB_NEVER    (-9999.0f)
float sampling_logprobs(const float *logits, size_t n_vocab, int32_t id, struct candidate *top,
                        size_t n_top);
