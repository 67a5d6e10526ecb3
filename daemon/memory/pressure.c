/* Reading the kernel's stall figures, and what to do about them.  See pressure.h. */

#include "daemon/memory/pressure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/file.h"
#include "common/str.h"
#include "daemon/memory/probe.h"

/* Percent of the time since the last sample. */
#define SOME_PRESSES 20.0 /* some task waited: the machine is short */
#define FULL_PRESSES 5.0  /* all did: it stands still for that long */
#define SOME_CALM    1.0
#define SHORT        0.10 /* of the machine is available, or less */

#define KEEP_DIVISOR 4    /* of the budget, stays whatever happens: a model can still be loaded */
#define STEP_DIVISOR 16   /* of the budget, by step */
#define LOWER_MS     2000 /* between steps down: what a step gave back must show first */
#define CALM_MS      30000
#define GIVE_BACK_MS 10000

/* "some avg10=0.12 avg60=… total=345": the first and the last number of a line. */
static bool parse_line(const char *line, double *ret_avg10, uint64_t *ret_us)
{
    static const char avg10[] = "avg10=", total[] = "total=";
    const char *a = strstr(line, avg10), *t = strstr(line, total);
    char *end;

    if (!a || !t)
        return false;
    *ret_avg10 = strtod(a + strlen(avg10), &end);
    if (*end != ' ')
        return false;
    *ret_us = strtoull(t + strlen(total), &end, 10);
    return end != t + strlen(total);
}

int pressure_parse(const char *text, struct pressure_sample *ret, struct err *err)
{
    struct pressure_sample s = {.available = -1};
    const char *full = strstr(text, "full ");

    /* kernels before 5.13 have no "full" line for all */
    if (strncmp(text, "some ", 5) != 0 || !parse_line(text, &s.some_avg10, &s.some_us) ||
        (full && !parse_line(full, &s.full_avg10, &s.full_us)))
        return err_set(err, ERR_FORMAT, "the kernel's memory pressure is not what it should be");
    *ret = s;
    return 0;
}

static double number_behind(const char *text, const char *key)
{
    const char *p = strstr(text, key);

    return p ? strtod(p + strlen(key), NULL) : 0;
}

static double available(const char *meminfo)
{
    struct str text = {0};
    double share = -1;

    if (file_read_all(meminfo, 65536, &text, NULL) >= 0) {
        double all = number_behind(str_text(&text), "MemTotal:");

        if (all > 0)
            share = number_behind(str_text(&text), "MemAvailable:") / all;
    }
    str_clear(&text);
    return share;
}

int pressure_sample(const struct pressure_source *s, struct pressure_sample *ret, struct err *err)
{
    struct str text = {0};
    int r = file_read_all(s->path, 4096, &text, err);

    if (r >= 0)
        r = pressure_parse(str_text(&text), ret, err);
    if (r >= 0 && s->meminfo[0])
        ret->available = available(s->meminfo);
    str_clear(&text);
    return r;
}

int pressure_open(const char *root, struct pressure_source *ret, struct err *err)
{
    struct pressure_source s = {"", ""};
    struct pressure_sample sample;
    char group[400];

    if (probe_own_cgroup2(root, group, sizeof group)) {
        /* The pressure of the root group, which has no limit, is the machine's. */
        snprintf(s.path, sizeof s.path, "%s%s/memory.max", root, group);
        if (file_exists(s.path)) {
            snprintf(s.path, sizeof s.path, "%s%s/memory.pressure", root, group);
            if (pressure_sample(&s, &sample, NULL) == 0)
                goto found;
        }
    }
    snprintf(s.path, sizeof s.path, "%s/proc/pressure/memory", root);
    snprintf(s.meminfo, sizeof s.meminfo, "%s/proc/meminfo", root);
    if (pressure_sample(&s, &sample, NULL) < 0)
        return err_set(err, ERR_UNSUPPORTED,
                       "this kernel does not say how long tasks wait for memory (no PSI)");
found:
    *ret = s;
    return 0;
}

static double percent(uint64_t us, int64_t ms)
{
    return ms > 0 ? (double)us / ((double)ms * 10.0) : 0;
}

static uint64_t since(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void lower(struct pressure_state *s, const struct pressure_input *in, size_t floor)
{
    size_t effective = in->budget_bytes - s->lowered_bytes;
    /* bytes of the budget that nobody holds are nothing the machine could use */
    size_t from = MIN(effective, MAX(in->used_bytes, floor));
    size_t step = in->budget_bytes / STEP_DIVISOR;

    from = from > floor + step ? from - step : floor;
    s->lowered_bytes = in->budget_bytes - MIN(from, effective);
}

void pressure_decide(struct pressure_state *s, const struct pressure_input *in,
                     struct pressure_decision *ret)
{
    int64_t ms = s->sampled_ms ? in->now_ms - s->sampled_ms : 0;
    double some = percent(since(in->sample.some_us, s->some_us), ms);
    double full = percent(since(in->sample.full_us, s->full_us), ms);
    bool is_short = in->sample.available < 0 || in->sample.available <= SHORT;
    bool presses = ms > 0 && is_short && (some >= SOME_PRESSES || full >= FULL_PRESSES);
    size_t floor = MIN(MAX(in->floor_bytes, in->budget_bytes / KEEP_DIVISOR), in->budget_bytes);
    size_t before;

    /* a budget that was set anew, or a floor that rose, may leave less to take */
    s->lowered_bytes = MIN(s->lowered_bytes, in->budget_bytes - floor);
    before = s->lowered_bytes;
    if (presses || (is_short && some >= SOME_CALM))
        s->calm_since_ms = 0;
    else if (!s->calm_since_ms)
        s->calm_since_ms = in->now_ms;
    if (presses && in->used_bytes > floor && in->now_ms - s->changed_ms >= LOWER_MS) {
        lower(s, in, floor);
    } else if (s->lowered_bytes && s->calm_since_ms && in->now_ms - s->calm_since_ms >= CALM_MS &&
               in->now_ms - s->changed_ms >= GIVE_BACK_MS) {
        s->lowered_bytes -= MIN(s->lowered_bytes, MAX(in->budget_bytes / STEP_DIVISOR, 1));
    }
    if (s->lowered_bytes != before)
        s->changed_ms = in->now_ms;
    s->sampled_ms = in->now_ms;
    s->some_us = in->sample.some_us;
    s->full_us = in->sample.full_us;
    ret->verdict = s->lowered_bytes > before   ? PRESSURE_LOWER
                   : s->lowered_bytes < before ? PRESSURE_GIVE_BACK
                                               : PRESSURE_STAY;
    ret->effective_bytes = in->budget_bytes - s->lowered_bytes;
    ret->stalled = MAX(some, full);
}
