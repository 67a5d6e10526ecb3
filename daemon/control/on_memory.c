/* Methods about memory: the budget and the ledger. */
#include "common/json.h"
#include "common/log.h"
#include "common/units.h"
#include "daemon/control/control_priv.h"

json_t *json_of_budget(const struct engine *e)
{
    struct ledger_report r;

    engine_memory(e, POOL_RAM, &r);
    return json_pack("{s:{s:I, s:I, s:I, s:I}}", "ram", "budget", (json_int_t)r.budget, "used",
                     (json_int_t)r.used, "free",
                     (json_int_t)(r.budget > r.used ? r.budget - r.used : 0), "capacity",
                     (json_int_t)r.capacity);
}

int on_budget_get(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    (void)params;
    (void)err;
    *ret_result = json_of_budget(c->peer->control->engine);
    return 1;
}

static json_t *shape_budget(const struct call *c, const json_t *result)
{
    json_t *o = json_of_budget(c->peer->control->engine);

    json_object_set(o, "unloaded", json_object_get(result, "unloaded"));
    return o;
}

int on_budget_set(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct engine *e = c->peer->control->engine;
    struct job_sink sink = call_sink(c);
    uint64_t ram = 0;
    bool force = false, cancel = false;
    int64_t job;
    char buf[32];
    int r;

    (void)ret_result;
    /* A share is one of what there is now, and no more than that is a budget. */
    c->peer->control->hooks.probe(c->peer->control->hooks.arg);
    r = param_size(c->peer->control, params, "ram", &ram, err);
    if (r >= 0 && ram == 0)
        r = err_set_param(err, ERR_INVALID, "ram",
                          "budget.set needs 'ram': the new budget, such as \"4GiB\"");
    if (r >= 0)
        r = json_get_bool(params, "force", &force, err);
    if (r >= 0)
        r = json_get_bool(params, "cancel", &cancel, err);
    if (r < 0)
        return r;
    log_info("budget change asked for", "ram=%s uid=%d pid=%d",
             units_format_size(ram, buf, sizeof buf), (int)c->peer->who.uid, (int)c->peer->who.pid);
    job = engine_set_budget(e, ram,
                            cancel  ? BUDGET_RUNNING
                            : force ? BUDGET_IDLE
                                    : BUDGET_KEEP,
                            &sink, err);
    if (job < 0)
        return (int)job;
    c->job = job;
    c->shape = shape_budget;
    return 0;
}

int on_memory_report(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct engine *e = c->peer->control->engine;
    json_t *pools = json_array();

    (void)params;
    (void)err;
    for (int p = 0; p < POOL_COUNT; p++) {
        struct ledger_report r;
        json_t *accounts = json_array();
        json_t *pool;

        engine_memory(e, (enum pool)p, &r);
        for (int a = 0; a < ACCOUNT_COUNT; a++)
            json_array_append_new(accounts, json_pack("{s:s, s:I, s:I}", "name",
                                                      ledger_account_name((enum account)a), "bytes",
                                                      (json_int_t)r.accounts[a], "peak",
                                                      (json_int_t)r.account_peaks[a]));
        pool = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "name", ledger_pool_name((enum pool)p),
                         "capacity", (json_int_t)r.capacity, "budget", (json_int_t)r.budget, "used",
                         (json_int_t)r.used, "peak", (json_int_t)r.peak, "refused",
                         (json_int_t)r.refused);
        json_object_set_new(pool, "accounts", accounts);
        json_array_append_new(pools, pool);
    }
    *ret_result =
        json_pack("{s:o, s:I, s:I}", "pools", pools, "rss", (json_int_t)engine_rss_bytes(e),
                  "page_cache", (json_int_t)engine_page_cache_bytes(e));
    return 1;
}

int on_cache_report(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct job_sink sink = call_sink(c);
    struct cache_ask ask = {0};
    const char *model = NULL;
    int64_t job, from = 0;
    int r = json_get_string(params, "model", &model, err);

    (void)ret_result;
    if (r >= 0)
        r = json_get_bool(params, "map", &ask.map, err);
    if (r >= 0)
        r = json_get_bool(params, "experts", &ask.experts, err);
    if (r >= 0)
        r = json_get_bool(params, "curve", &ask.curve, err);
    if (r >= 0)
        r = json_get_int(params, "from", 0, INT32_MAX, &from, err);
    if (r >= 0)
        r = json_get_string(params, "trace", &ask.trace, err);
    if (r < 0)
        return r;
    ask.from = (size_t)from;
    job = engine_cache(c->peer->control->engine, model, &ask, &sink, err);
    if (job < 0)
        return (int)job;
    c->job = job;
    return 0;
}
