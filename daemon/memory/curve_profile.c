/* Curves that outlive their model.  See curve_profile.h. */

#include "daemon/memory/curve_profile.h"

#include <math.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/memory/kept.h"

#define STATE_VERSION 3
#define STATE_MAX     ((size_t)256 << 10)

bool curve_profile_make(const struct curve *c, struct curve_profile *ret)
{
    unsigned n = c ? curve_most_experts(c) : 0;

    if (!n || curve_tokens(c) < CURVE_PROFILE_TOKENS)
        return false;
    *ret = (struct curve_profile){
        .n_experts = n, .tokens = curve_tokens(c), .hits = XNEW_ARRAY(double, n + 1)};
    for (unsigned q = 1; q <= n; q++)
        ret->hits[q] = (fmax(curve_quota_rate(c, q), 0) + curve_warm_rate(c, q)) / 2;
    return true;
}

void curve_profile_clear(struct curve_profile *p)
{
    free(p->hits);
    *p = (struct curve_profile){0};
}

double curve_profile_hits(const struct curve_profile *p, double quota)
{
    unsigned whole;

    if (quota >= p->n_experts)
        return p->hits[p->n_experts];
    if (!(quota > 0))
        return 0;
    /* some layers have one slot more than others: as many as the fraction says */
    whole = (unsigned)quota;
    return p->hits[whole] + (p->hits[whole + 1] - p->hits[whole]) * (quota - whole);
}

static char *state_path(const char *dir, const char *key)
{
    return xasprintf("%s/curve-%s.json", dir, key);
}

void curve_profile_save(const struct curve_profile *p, const char *dir, const char *key)
{
    json_t *hits = json_array(), *all;
    char *path = state_path(dir, key);

    for (unsigned q = 0; q <= p->n_experts; q++)
        json_array_append_new(hits, json_real(p->hits[q]));
    all = json_pack("{s:i, s:i, s:f, s:o}", "version", STATE_VERSION, "experts", (int)p->n_experts,
                    "tokens", p->tokens, "hits", hits);
    kept_save(dir, path, all);
    free(path);
}

static bool take(const json_t *all, unsigned n_experts, struct curve_profile *ret)
{
    const json_t *hits = json_object_get(all, "hits");
    int64_t version = 0, n = 0;
    double tokens = 0;

    if (json_get_int(all, "version", STATE_VERSION, STATE_VERSION, &version, NULL) != 1 ||
        json_get_int(all, "experts", n_experts, n_experts, &n, NULL) != 1 ||
        json_get_double(all, "tokens", CURVE_PROFILE_TOKENS, 1e15, &tokens, NULL) != 1 ||
        json_array_size(hits) != (size_t)n_experts + 1)
        return false;
    *ret = (struct curve_profile){
        .n_experts = n_experts, .tokens = tokens, .hits = XNEW_ARRAY(double, n_experts + 1)};
    for (unsigned q = 0; q <= n_experts; q++) {
        ret->hits[q] = json_number_value(json_array_get(hits, q));
        if (!(ret->hits[q] >= 0 && ret->hits[q] <= 1)) {
            curve_profile_clear(ret);
            return false;
        }
    }
    return true;
}

bool curve_profile_load(const char *dir, const char *key, unsigned n_experts,
                        struct curve_profile *ret)
{
    char *path = state_path(dir, key);
    json_t *all = n_experts ? kept_load(path, STATE_MAX) : NULL;
    bool ok = all && take(all, n_experts, ret);

    json_decref(all);
    free(path);
    return ok;
}
