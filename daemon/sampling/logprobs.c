/* Log probabilities of the plain softmax; see sampler.h. */
#include <float.h>
#include <math.h>

#include "common/alloc.h"
#include "daemon/sampling/exact.h"
#include "daemon/sampling/sampler_priv.h"

static float logprob(float logit, double max, double ln_total)
{
    /* Not finite: a NaN, or a token that was ruled out. */
    return isfinite(logit) ? (float)(logit - max - ln_total) : SAMPLING_LOGPROB_NEVER;
}

float sampling_logprobs(const float *logits, size_t n_vocab, int32_t id, struct candidate *top,
                        size_t n_top)
{
    double max = -INFINITY, total = 0, ln_total;
    size_t n = 0;

    for (size_t i = 0; i < n_vocab; i++)
        if (isfinite(logits[i]) && logits[i] > max)
            max = logits[i];
    for (size_t i = 0; i < n_vocab; i++)
        if (isfinite(logits[i]))
            total += exact_exp(logits[i] - max);
    ln_total = exact_log(total);
    for (size_t i = 0; i < n_vocab && n_top > 0; i++) {
        float v = isfinite(logits[i]) ? logits[i] : -FLT_MAX;
        size_t at = n;

        if (n == n_top && !(v > top[n - 1].logit))
            continue;
        if (n < n_top)
            n++;
        else
            at = n - 1;
        for (; at > 0 && v > top[at - 1].logit; at--)
            top[at] = top[at - 1];
        top[at] = (struct candidate){.id = (int32_t)i, .logit = v};
    }
    for (size_t i = 0; i < n_top; i++) {
        if (i >= n)
            top[i] = (struct candidate){.id = -1, .logit = -FLT_MAX};
        top[i].p = i < n ? logprob(logits[top[i].id], max, ln_total) : SAMPLING_LOGPROB_NEVER;
    }
    return id >= 0 && (size_t)id < n_vocab ? logprob(logits[id], max, ln_total)
                                           : SAMPLING_LOGPROB_NEVER;
}
