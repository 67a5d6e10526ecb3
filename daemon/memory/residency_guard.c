/* The cliff guard at work: what a token took, and fewer slots where more of them hurt.  See guard.h. */
#include <sys/resource.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/memory/residency_priv.h"

void residency_probe_process(void *arg, int64_t *ret_us, uint64_t *ret_major_faults)
{
    struct rusage u;

    (void)arg;
    getrusage(RUSAGE_SELF, &u);
    *ret_us = clock_us();
    *ret_major_faults = (uint64_t)u.ru_majflt;
}

void residency_set_probe(struct residency *r, residency_probe_fn *probe, void *arg)
{
    r->cliff.probe = probe;
    r->cliff.probe_arg = arg;
}

static size_t slots_filled(const struct residency *r)
{
    size_t n = 0;

    for (size_t i = 0; i < r->in.n_units; i++)
        n += experts_resident(&r->units[i]);
    return n;
}

void cliff_token_begins(struct residency *r)
{
    struct cliff *c = &r->cliff;

    c->probe(c->probe_arg, &c->began_us, &c->faults);
    c->uses = r->uses;
    c->hits = r->hits;
    c->open = true;
}

void cliff_token_ends(struct residency *r)
{
    struct cliff *c = &r->cliff;
    size_t had = r->p.n_slots;
    struct guard_token t;
    int64_t now_us;
    uint64_t faults;
    double slower;

    if (!c->open || !r->last_decode)
        return;
    c->open = false;
    c->probe(c->probe_arg, &now_us, &faults);
    t = (struct guard_token){.us = now_us - c->began_us,
                             .uses = r->uses - c->uses,
                             .hits = r->hits - c->hits,
                             .major_faults = faults - c->faults,
                             .slots = guard_window_ends(&c->guard) ? slots_filled(r) : 0};
    switch (guard_note(&c->guard, &t, &slower)) {
    case GUARD_STAY: break;
    case GUARD_STEP_BACK:
        c->before = had;
        log_warning("more cache made tokens slower; going back to fewer experts in memory",
                    "%s experts=%zu now=%zu slower=%.1fx; a smaller budget would be as fast",
                    r->tag, t.slots, c->guard.cap, slower);
        break;
    case GUARD_TRY_AGAIN:
        log_info("trying again with more experts in memory", "%s experts=%zu", r->tag, c->before);
        break;
    }
}
