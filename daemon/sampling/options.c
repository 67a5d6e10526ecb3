/* Defaults and ranges of what a request may ask for; see sampler.h. */
#include <math.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/sampling/sampler.h"

void sampling_defaults(struct sampling_options *o)
{
    *o = (struct sampling_options){
        .temperature = 0.8f,
        .dynatemp_exponent = 1.0f,
        .top_k = 40,
        .top_p = 0.95f,
        .min_p = 0.05f,
        .typical_p = 1.0f,
        .xtc_threshold = 0.1f,
        .repeat_last_n = 64,
        .repeat_penalty = 1.0f,
        .dry_base = 1.75f,
        .dry_allowed_length = 2,
        .dry_last_n = -1,
        .mirostat_tau = 5.0f,
        .mirostat_eta = 0.1f,
    };
}

struct range {
    const char *field;
    float value;
    float low, high;
};

int sampling_check(const struct sampling_options *o, struct err *err)
{
    const struct range ranges[] = {
        {"temperature", o->temperature, 0, 100},
        {"dynatemp_range", o->dynatemp_range, 0, 100},
        {"dynatemp_exponent", o->dynatemp_exponent, 0, 100},
        {"top_k", (float)o->top_k, -1, 0x1p30f},
        {"top_p", o->top_p, 0, 1},
        {"min_p", o->min_p, 0, 1},
        {"typical_p", o->typical_p, 0, 1},
        {"top_n_sigma", o->top_n_sigma, -1, 100},
        {"xtc_probability", o->xtc_probability, 0, 1},
        {"xtc_threshold", o->xtc_threshold, 0, 1},
        {"repeat_last_n", (float)o->repeat_last_n, -1, 0x1p30f},
        {"repeat_penalty", o->repeat_penalty, 0.01f, 100},
        {"frequency_penalty", o->frequency_penalty, -100, 100},
        {"presence_penalty", o->presence_penalty, -100, 100},
        {"dry_multiplier", o->dry_multiplier, 0, 100},
        {"dry_base", o->dry_base, 1, 100},
        {"dry_allowed_length", (float)o->dry_allowed_length, 1, 0x1p30f},
        {"dry_last_n", (float)o->dry_last_n, -1, 0x1p30f},
        {"mirostat_tau", o->mirostat_tau, 0, 100},
        {"mirostat_eta", o->mirostat_eta, 0, 1},
    };

    for (size_t i = 0; i < ARRAY_LEN(ranges); i++)
        /* Written so that a NaN fails. */
        if (!(ranges[i].value >= ranges[i].low && ranges[i].value <= ranges[i].high))
            return err_set_param(err, ERR_INVALID, ranges[i].field,
                                 "'%s' is %g; it must be between %g and %g", ranges[i].field,
                                 (double)ranges[i].value, (double)ranges[i].low,
                                 (double)ranges[i].high);
    if (o->mirostat != 0 && o->mirostat != 2)
        return err_set_param(err, ERR_INVALID, "mirostat",
                             "'mirostat' is %d; it must be 0 (off) or 2", (int)o->mirostat);
    if (o->n_dry_breakers > SAMPLING_MAX_DRY_BREAKERS)
        return err_set_param(err, ERR_INVALID, "dry_sequence_breakers",
                             "'dry_sequence_breakers' has %u strings; at most %d are possible",
                             o->n_dry_breakers, SAMPLING_MAX_DRY_BREAKERS);
    for (unsigned i = 0; i < o->n_dry_breakers; i++)
        if (!o->dry_breakers[i] || !*o->dry_breakers[i])
            return err_set_param(err, ERR_INVALID, "dry_sequence_breakers",
                                 "string %u of 'dry_sequence_breakers' is empty; leave it out", i);
    for (size_t i = 0; i < o->n_bias; i++)
        if (isnan(o->bias[i].bias))
            return err_set_param(err, ERR_INVALID, "logit_bias",
                                 "'logit_bias' of token %d is not a number", (int)o->bias[i].id);
    return 0;
}
