/* The chain of steps from logits to an id; see sampler.h for their order. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/sampling/exact.h"
#include "daemon/sampling/sampler_priv.h"

size_t sampler_bytes(const struct sampling_options *o, size_t n_vocab, size_t n_history)
{
    size_t per_id = sizeof(struct candidate) + sizeof(float) + sizeof(int32_t);
    size_t per_history = sizeof(int32_t);

    if (o->typical_p < 1.0f)
        per_id += sizeof(double);
    if (dry_on(o)) {
        per_id += sizeof(uint8_t) + sizeof(int32_t);
        per_history += sizeof(int32_t);
    }
    return sizeof(struct sampler) + n_vocab * per_id + n_history * per_history;
}

struct sampler *sampler_create(const struct sampling_options *o, size_t n_vocab, size_t n_history)
{
    struct sampler *s = XNEW(struct sampler);
    bool ok;

    s->opt = *o;
    s->n_vocab = n_vocab;
    s->cap_history = n_history;
    s->mirostat_mu = 2.0 * o->mirostat_tau;
    rng_seed(&s->rng, o->seed);
    s->list.c = calloc(n_vocab, sizeof *s->list.c);
    s->logits = calloc(n_vocab, sizeof *s->logits);
    s->counts = calloc(n_vocab, sizeof *s->counts);
    s->history = calloc(MAX(n_history, (size_t)1), sizeof *s->history);
    ok = s->list.c && s->logits && s->counts && s->history;
    if (o->typical_p < 1.0f) {
        s->score = calloc(n_vocab, sizeof *s->score);
        ok = ok && s->score;
    }
    if (dry_on(o)) {
        s->breaker = calloc(n_vocab, sizeof *s->breaker);
        s->repeat = calloc(n_vocab, sizeof *s->repeat);
        s->suffix = calloc(MAX(n_history, (size_t)1), sizeof *s->suffix);
        ok = ok && s->breaker && s->repeat && s->suffix;
    }
    if (!ok) {
        sampler_destroy(s);
        return NULL;
    }
    return s;
}

void sampler_destroy(struct sampler *s)
{
    if (!s)
        return;
    free(s->list.c);
    free(s->logits);
    free(s->counts);
    free(s->history);
    free(s->score);
    free(s->breaker);
    free(s->repeat);
    free(s->suffix);
    free(s);
}

void sampler_accept(struct sampler *s, int32_t id)
{
    penalties_accept(s, id);
}

void sampler_set_dry_breakers(struct sampler *s, const int32_t *ids, size_t n)
{
    if (!s->breaker)
        return;
    memset(s->breaker, 0, s->n_vocab);
    for (size_t i = 0; i < n; i++)
        if (ids[i] >= 0 && (size_t)ids[i] < s->n_vocab)
            s->breaker[ids[i]] = 1;
}

/* Steps that change single logits, on a copy; the caller's logits when none is on. */
static const float *changed_logits(struct sampler *s, const float *logits)
{
    const struct sampling_options *o = &s->opt;

    if (o->n_bias == 0 && !penalties_on(o) && !dry_on(o))
        return logits;
    memcpy(s->logits, logits, s->n_vocab * sizeof *logits);
    for (size_t i = 0; i < o->n_bias; i++)
        if (o->bias[i].id >= 0 && (size_t)o->bias[i].id < s->n_vocab)
            s->logits[o->bias[i].id] += o->bias[i].bias;
    if (penalties_on(o))
        penalties_apply(s, s->logits);
    if (dry_on(o))
        dry_apply(s, s->logits);
    return s->logits;
}

/* The lowest id among the highest logits; 0 when there is nothing but −INFINITY and NaN. */
static int32_t best_id(const float *logits, size_t n)
{
    float best[8], most = -INFINITY;
    size_t i = 0;

    /* Eight running maxima have no chain of dependent compares; the second pass finds the place. */
    for (size_t k = 0; k < 8; k++)
        best[k] = -INFINITY;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            best[k] = logits[i + k] > best[k] ? logits[i + k] : best[k];
    for (; i < n; i++)
        best[0] = logits[i] > best[0] ? logits[i] : best[0];
    for (size_t k = 0; k < 8; k++)
        most = best[k] > most ? best[k] : most;
    for (i = 0; most > -INFINITY && i < n; i++)
        if (logits[i] == most)
            return (int32_t)i;
    return 0;
}

static int32_t only(struct sampler *s, int32_t id, const float *logits)
{
    s->list.c[0] = (struct candidate){.id = id, .logit = logits[id], .p = 1.0f};
    s->list.n = s->list.n_sorted = 1;
    return id;
}

static void apply_temperature(struct sampler *s)
{
    const struct sampling_options *o = &s->opt;

    if (o->dynatemp_range > 0)
        filter_dynatemp(&s->list, o->temperature, o->dynatemp_range, o->dynatemp_exponent);
    else if (o->temperature != 1.0f)
        filter_temperature(&s->list, o->temperature);
}

/* One of the list by its shares. */
static const struct candidate *draw(struct sampler *s)
{
    const struct pool_list *l = &s->list;
    const struct candidate *last = &l->c[0];
    double r = rng_unit(&s->rng), sum = 0;

    for (size_t i = 0; i < l->n; i++) {
        if (l->c[i].p > 0)
            last = &l->c[i];
        sum += l->c[i].p;
        if (r < sum)
            break;
    }
    /* The shares are floats and may sum to a little less than 1: then it is the last possible one. */
    return last;
}

/* Mirostat 2 (Basu et al. 2021): keeps the surprise of what is chosen near tau. */
static int32_t choose_mirostat(struct sampler *s)
{
    const struct candidate *c;

    apply_temperature(s);
    filter_surprise(&s->list, s->mirostat_mu);
    filter_softmax(&s->list);
    c = draw(s);
    s->mirostat_mu -=
        s->opt.mirostat_eta * (-exact_log(c->p) * 1.44269504088896340736 - s->opt.mirostat_tau);
    return c->id;
}

int32_t sampler_choose(struct sampler *s, const float *logits)
{
    const struct sampling_options *o = &s->opt;
    struct pool_list *l = &s->list;
    float least = -INFINITY;

    logits = changed_logits(s, logits);
    if (o->temperature <= 0)
        return only(s, best_id(logits, s->n_vocab), logits);
    if (o->top_n_sigma > 0)
        least = filter_sigma_least(logits, s->n_vocab, o->top_n_sigma);
    filter_gather(l, logits, s->n_vocab, o->mirostat || o->top_k <= 0 ? 0 : (size_t)o->top_k,
                  least);
    if (l->n == 0)
        return only(s, best_id(logits, s->n_vocab), logits);
    if (o->mirostat)
        return choose_mirostat(s);
    if (o->typical_p < 1.0f)
        filter_typical(l, o->typical_p, s->score);
    if (o->top_p < 1.0f)
        filter_top_p(l, o->top_p);
    if (o->min_p > 0)
        filter_min_p(l, o->min_p);
    if (o->xtc_probability > 0 && o->xtc_threshold <= 0.5f && l->n > 1 &&
        rng_unit(&s->rng) < o->xtc_probability)
        filter_xtc(l, o->xtc_threshold);
    apply_temperature(s);
    filter_softmax(l);
    return draw(s)->id;
}

const struct candidate *sampler_survivors(struct sampler *s, size_t *ret_n)
{
    filter_sort(&s->list, s->list.n);
    *ret_n = s->list.n;
    return s->list.c;
}
