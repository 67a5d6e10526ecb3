/* See ease.h. */

#include "daemon/ease.h"

#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/units.h"
#include "daemon/memory/pressure.h"

struct ease {
    struct engine *engine;
    const struct ledger *ledger;
    struct pressure_source source;
    struct pressure_state state;
    int64_t next_ms;
    size_t set;    /* the budget that someone chose */
    size_t in_use; /* what it was made for now */
    int64_t job;   /* the engine is at it; 0: it is not */
};

int ease_create(struct engine *e, const struct ledger *l, struct ease **ret, struct err *err)
{
    struct pressure_source source;
    int r = pressure_open("", &source, err);

    if (r < 0)
        return r;
    *ret = XNEW(struct ease);
    **ret = (struct ease){.engine = e, .ledger = l, .source = source};
    (*ret)->set = (*ret)->in_use = ledger_budget(l, POOL_RAM);
    return 0;
}

void ease_destroy(struct ease *x)
{
    if (x && x->job)
        engine_job_abandon(x->engine, x->job);
    free(x);
}

static void on_progress(void *arg, const char *step, size_t done, size_t total)
{
    (void)arg, (void)step, (void)done, (void)total;
}

static void on_ended(void *arg, json_t *result, const struct err *error)
{
    (void)arg;
    (void)result;
    if (error)
        log_warning("the budget that was lowered stays:", "%s", error->text);
}

/* By this one, or soon: a change that is under way goes on when nobody waits for it. */
static bool is_lowered(const struct ease *x)
{
    return x->job || (ledger_budget(x->ledger, POOL_RAM) == x->in_use && ease_lowered_bytes(x) > 0);
}

/* What was set, or what there still is of it. */
static size_t aim(const struct ease *x)
{
    return MIN(x->set, ledger_capacity(x->ledger, POOL_RAM));
}

void ease_end(struct ease *x)
{
    struct job_sink sink = {on_progress, on_ended, NULL};
    struct err err;

    if (x && is_lowered(x) && !engine_budget_waits(x->engine, x->job) &&
        engine_set_budget(x->engine, aim(x), BUDGET_KEEP, &sink, &err) < 0)
        on_ended(NULL, NULL, &err);
    ease_destroy(x);
}

size_t ease_lowered_bytes(const struct ease *x)
{
    return x && x->set > x->in_use ? x->set - x->in_use : 0;
}

static void on_done(void *arg, json_t *result, const struct err *error)
{
    struct ease *x = arg;

    (void)error; /* what could not be given back: the next decision begins at what is in use */
    x->job = 0;
    if (result) /* and not what the ledger says: somebody may have chosen another since */
        x->in_use = (size_t)json_integer_value(json_object_get(result, "ram"));
}

static void ask(struct ease *x, const struct pressure_decision *d)
{
    struct job_sink sink = {on_progress, on_done, x};
    char to[24], set[24];
    struct err err;

    units_format_size(d->effective_bytes, to, sizeof to);
    units_format_size(x->set, set, sizeof set);
    if (d->verdict == PRESSURE_LOWER)
        log_notice("the machine is short of memory, lowering the budget",
                   "budget=%s set=%s waiting=%.0f%%", to, set, d->stalled);
    else
        log_notice("memory is calm again, raising the budget", "budget=%s set=%s", to, set);
    x->job = engine_set_budget(x->engine, d->effective_bytes, BUDGET_KEEP, &sink, &err);
    if (x->job < 0)
        on_done(x, NULL, &err);
}

void ease_tick(struct ease *x)
{
    struct pressure_input in = {.now_ms = clock_ms()};
    struct pressure_decision d;
    size_t budget, spare;

    /* while someone's choice waits there is nothing to decide about */
    if (!x || x->job || in.now_ms < x->next_ms || engine_budget_waits(x->engine, 0))
        return;
    x->next_ms = in.now_ms + PRESSURE_PERIOD_MS;
    budget = ledger_budget(x->ledger, POOL_RAM);
    if (budget != x->in_use) /* someone chose another */
        x->set = x->in_use = budget;
    if (pressure_sample(&x->source, &in.sample, NULL) < 0)
        return;
    spare = engine_spare_bytes(x->engine);
    x->set = MAX(aim(x), x->in_use);
    x->state.lowered_bytes = ease_lowered_bytes(x);
    in.budget_bytes = x->set;
    in.used_bytes = ledger_used(x->ledger, POOL_RAM);
    in.floor_bytes = in.used_bytes - MIN(in.used_bytes, spare);
    pressure_decide(&x->state, &in, &d);
    if (d.verdict != PRESSURE_STAY && d.effective_bytes != budget)
        ask(x, &d);
}
