/*
 * The steps that change logits by what was already said: repeat, frequency
 * and presence penalties, and DRY ("don't repeat yourself", p-e-w 2024: what
 * would make a long repeat longer is punished exponentially).
 */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/sampling/exact.h"
#include "daemon/sampling/sampler_priv.h"

/* ln of the largest float: an exponent beyond it would overflow. */
#define LN_FLT_MAX 88.7228390520683

bool penalties_on(const struct sampling_options *o)
{
    return o->repeat_last_n != 0 && (o->repeat_penalty != 1.0f || o->frequency_penalty != 0.0f ||
                                     o->presence_penalty != 0.0f);
}

bool dry_on(const struct sampling_options *o)
{
    return o->dry_multiplier != 0.0f && o->dry_base >= 1.0f && o->dry_last_n != 0;
}

/* How many of the accepted ids a window of last_n covers (−1: all). */
static size_t window(const struct sampler *s, int32_t last_n)
{
    return last_n < 0 ? s->n_history : MIN((size_t)last_n, s->n_history);
}

void penalties_accept(struct sampler *s, int32_t id)
{
    size_t before = window(s, s->opt.repeat_last_n);

    if (id < 0 || (size_t)id >= s->n_vocab || s->cap_history == 0)
        return;
    if (s->n_history == s->cap_history) {
        /* Forgets the older half at once: no id is moved more than once on average. */
        size_t kept = s->cap_history / 2, gone = s->n_history - kept;

        if (before > kept) {
            for (size_t i = s->n_history - before; i < gone; i++)
                s->counts[s->history[i]]--;
            before = kept;
        }
        memmove(s->history, s->history + gone, kept * sizeof *s->history);
        s->n_history = kept;
    }
    s->history[s->n_history++] = id;
    s->counts[id]++;
    if (window(s, s->opt.repeat_last_n) == before)
        s->counts[s->history[s->n_history - 1 - before]]--;
}

void penalties_apply(struct sampler *s, float *logits)
{
    const struct sampling_options *o = &s->opt;
    size_t n = window(s, o->repeat_last_n);
    const int32_t *recent = s->history + s->n_history - n;

    for (size_t i = 0; i < n; i++) {
        int32_t id = recent[i], count = s->counts[id];
        float v = logits[id];

        if (count <= 0)
            continue; /* done: its sign says so */
        v = v > 0 ? v / o->repeat_penalty : v * o->repeat_penalty;
        logits[id] = v - ((float)count * o->frequency_penalty + o->presence_penalty);
        s->counts[id] = -count;
    }
    for (size_t i = 0; i < n; i++)
        s->counts[recent[i]] = abs(s->counts[recent[i]]);
}

/*
 * suffix[k] = how many ids at the end of recent[n] are also the end of
 * recent[0 .. n−k), by the Z algorithm (Gusfield 1997, 1.3) on the reversed
 * list: linear in n.
 */
static void common_suffixes(const int32_t *recent, size_t n, int32_t *suffix)
{
    size_t left = 0, right = 0; /* the match that reaches farthest: [left, right) */

    suffix[0] = (int32_t)n;
    for (size_t k = 1; k < n; k++) {
        size_t len = k < right ? MIN((size_t)suffix[k - left], right - k) : 0;

        while (k + len < n && recent[n - 1 - len] == recent[n - 1 - len - k])
            len++;
        suffix[k] = (int32_t)len;
        if (k + len > right) {
            left = k;
            right = k + len;
        }
    }
}

void dry_apply(struct sampler *s, float *logits)
{
    const struct sampling_options *o = &s->opt;
    size_t n = window(s, o->dry_last_n), limit = 0;
    const int32_t *recent = s->history + s->n_history - n;
    int32_t allowed = MAX(o->dry_allowed_length, 1);
    double ln_base = exact_log(o->dry_base);

    while (limit < n && !s->breaker[recent[n - 1 - limit]])
        limit++;
    if (limit < (size_t)allowed || n <= (size_t)allowed)
        return;
    common_suffixes(recent, n, s->suffix);
    /* recent[n − k] came after the ids that end k from the end: saying it again goes on with them. */
    for (size_t k = 1; k < n; k++) {
        int32_t id = recent[n - k], len = (int32_t)MIN((size_t)s->suffix[k], limit);

        if (len >= allowed && !s->breaker[id])
            s->repeat[id] = MAX(s->repeat[id], len);
    }
    for (size_t k = 1; k < n; k++) {
        int32_t id = recent[n - k];

        if (s->repeat[id] == 0)
            continue;
        logits[id] -= (float)(o->dry_multiplier *
                              exact_exp(MIN((s->repeat[id] - allowed) * ln_base, LN_FLT_MAX - 1)));
        s->repeat[id] = 0;
    }
}
