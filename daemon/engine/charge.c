/* What the faces hold of requests that are not submitted yet; see engine.h. */
#include "common/thread.h"
#include "daemon/engine/engine_priv.h"

int engine_charge(struct engine *e, size_t bytes, const char *who, struct err *err)
{
    thread_assert(THREAD_LOOP);
    return ledger_reserve(e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, bytes, who, err);
}

void engine_discharge(struct engine *e, size_t bytes)
{
    thread_assert(THREAD_LOOP);
    ledger_release(e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, bytes);
}

int engine_charge_steps(struct engine *e, size_t *held, size_t bytes, size_t step, const char *who,
                        struct err *err)
{
    size_t want = bytes / step * step;
    int r = 0;

    if (want > *held)
        r = engine_charge(e, want - *held, who, err);
    else
        engine_discharge(e, *held - want);
    if (r >= 0)
        *held = want;
    return r;
}
