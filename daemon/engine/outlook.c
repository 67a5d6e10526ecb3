/* How fast a plan will be, by rates that are measured when first wanted; see outlook.h, forecast.h. */

#include "daemon/engine/outlook.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"
#include "common/units.h"
#include "daemon/engine/engine_priv.h"
#include "daemon/engine/forecast.h"

void outlook_destroy(struct outlook *o)
{
    if (!o)
        return;
    json_decref(o->result);
    for (size_t i = 0; i < o->n_parts; i++)
        free(o->parts[i].path);
    free(o->parts);
    free(o);
}

void outlook_add_parts(struct outlook *o, const struct gguf *g)
{
    o->n_parts = gguf_parts(g);
    o->parts = XNEW_ARRAY(struct outlook_part, o->n_parts);
    for (unsigned i = 0; i < o->n_parts; i++)
        o->parts[i].path = xstrdup(gguf_path(g, i));
    for (size_t i = 0; i < gguf_n_tensors(g); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(g, i);

        o->parts[t->part].bytes += (double)t->bytes;
    }
}

/* -- what is known of the routing ------------------------------------------------------------ */

struct hits {
    double rate;
    double *chosen;   /* as forecast.h; NULL: not known */
    const char *from; /* "even", "recorded", "running" */
    double tokens;
};

static void key_of(const char *path, size_t file_bytes, char ret[17])
{
    snprintf(ret, 17, "%016" PRIx64, hash_bytes_seed(path, strlen(path), file_bytes));
}

void outlook_remember(const struct engine *e, const struct slot *s)
{
    struct curve_profile p;
    struct model_info info;
    char key[17];

    if (!e->opt.state_dir || !s->model || !residency_curve_profile(model_weights(s->model), &p))
        return;
    model_info(s->model, &info);
    key_of(s->path, info.file_bytes, key);
    curve_profile_save(&p, e->opt.state_dir, key);
    curve_profile_clear(&p);
}

static bool find_profile(const struct engine *e, const struct job *j, struct curve_profile *ret,
                         const char **ret_from)
{
    const struct outlook *o = j->outlook;
    char key[17];

    *ret_from = "running";
    for (const struct slot *s = e->catalog.first; s; s = s->next)
        if (s->model && strcmp(s->path, j->target) == 0 &&
            residency_curve_profile(model_weights(s->model), ret)) {
            if (ret->n_experts == o->work.n_experts)
                return true;
            curve_profile_clear(ret);
        }
    *ret_from = "recorded";
    key_of(j->target, o->info.file_bytes, key);
    return e->opt.state_dir &&
           curve_profile_load(e->opt.state_dir, key, (unsigned)o->work.n_experts, ret);
}

/*
 * One slot more in a layer is hit as much more often as the expert is chosen
 * that takes it: the curve's steps are how the choice is spread.
 */
static double *chosen_of(const struct curve_profile *p, const struct model_work *w)
{
    double *ret = XNEW_ARRAY(double, w->n_experts);

    for (size_t e = 0; e < w->n_experts; e++)
        ret[e] = (double)w->n_used *
                 (curve_profile_hits(p, (double)(e + 1)) - curve_profile_hits(p, (double)e));
    return ret;
}

static struct hits hits_of(const struct engine *e, const struct job *j)
{
    const struct outlook *o = j->outlook;
    const struct model_work *w = &o->work;
    struct hits h = {.rate = 1, .from = "even"};
    struct curve_profile p;

    if (!w->n_units)
        return h;
    h.rate = forecast_even_hits(o->placement.n_slots, w->n_units, w->n_experts, w->n_used);
    if (find_profile(e, j, &p, &h.from)) {
        h.rate = curve_profile_hits(&p, (double)o->placement.n_slots / (double)w->n_units);
        h.tokens = p.tokens;
        h.chosen = chosen_of(&p, w);
        curve_profile_clear(&p);
    } else {
        h.from = "even";
    }
    return h;
}

/* -- what is known of the machine --------------------------------------------------------------- */

struct machine {
    bool measure; /* what is not known */
    double drive_rate, slice_rate, drive_wait_s, cpu_s_per_gib;
    bool measured_now;
    char why[256]; /* what is not known, and why; "" */
};

static void no_room(struct machine *m, const char *what, size_t bytes)
{
    char need[24];

    snprintf(m->why, sizeof m->why, "there is no room to measure %s: that takes %s", what,
             units_format_size_up(bytes, need, sizeof need));
}

static bool may_measure(const char *what, struct machine *m)
{
    if (m->measure)
        return true;
    snprintf(m->why, sizeof m->why, "%s not been measured yet; ask again when nothing runs", what);
    return false;
}

/* Between two figures: mail is read, and what it asks for may be worth more than they are. */
static bool is_broken_off(void *engine)
{
    struct engine *e = engine;

    worker_alive(e);
    worker_read_mail(e);
    return e->worker.stop || e->worker.budget || work_cancelled(e->worker.running);
}

/* As many weights to walk over as there is room for; false, and the least of them: none. */
static bool reserve_weights(struct engine *e, struct gauge_wants *w)
{
    for (size_t n = GAUGE_WEIGHTS; n >= GAUGE_WEIGHTS_LEAST; n /= 2) {
        w->weights_bytes = n;
        if (ledger_reserve(e->opt.ledger, POOL_RAM, ACCOUNT_STAGING, gauge_staging_bytes(w),
                           "the kernels", NULL) == 0)
            return true;
    }
    return false;
}

static void know_kernels(struct engine *e, const struct model_work *w, struct machine *m)
{
    struct gauge_mixture mixtures[MODEL_WORK_MIXTURES];
    struct gauge_wants wants = forecast_wants(w, mixtures);
    struct rates *k = &e->worker.rates;
    int64_t began_ms = clock_ms();
    struct err err;
    int r;

    if (!k->opened)
        gauge_open(&k->gauge, e->opt.state_dir, e->opt.backend_ops, e->opt.backend);
    k->opened = true;
    if (!gauge_lacks(&k->gauge, &wants) || !may_measure("the kernels have", m))
        return;
    if (!reserve_weights(e, &wants)) {
        no_room(m, "the kernels", gauge_staging_bytes(&wants));
        return;
    }
    wants.stop = is_broken_off;
    wants.stop_arg = e;
    r = gauge_measure(&k->gauge, &wants, e->opt.state_dir, e->opt.backend_ops, e->opt.backend,
                      &err);
    ledger_release(e->opt.ledger, POOL_RAM, ACCOUNT_STAGING, gauge_staging_bytes(&wants));
    if (r < 0) {
        snprintf(m->why, sizeof m->why, "the kernels cannot be measured: %.200s", err.text);
        return;
    }
    m->measured_now = true;
    log_info("measured the kernels", "machine='%s' memory=%.1fGB/s in=%lldms", k->gauge.machine,
             gauge_ram_rate(&k->gauge) / 1e9, (long long)(clock_ms() - began_ms));
}

static int measure_drive(struct engine *e, int fd, struct machine *m)
{
    struct calibrate_options o = {
        .state_dir = e->opt.state_dir, .stop = is_broken_off, .stop_arg = e};
    struct rates *k = &e->worker.rates;
    struct err err;
    int r;

    if (!may_measure("the drive has", m))
        return -ERR_BUSY;
    r = calibrate_within(e->opt.ledger, "the drive", fd, &o, &k->drive, &err);
    if (r == -ERR_NOMEM)
        no_room(m, "the drive", CALIBRATE_STAGING_LEAST);
    else if (r < 0)
        snprintf(m->why, sizeof m->why, "the drive cannot be measured: %.200s", err.text);
    if (r < 0)
        return r;
    m->measured_now = true;
    log_info("measured the drive", "%s", k->drive.why);
    return 0;
}

/* The drive below a file, NULL where nothing can be said of it. */
static const struct calibration *know_drive(struct engine *e, const char *path, struct machine *m)
{
    struct rates *k = &e->worker.rates;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st = {0};
    int r = 0;

    if (fd < 0 || fstat(fd, &st) < 0)
        snprintf(m->why, sizeof m->why, "the file can no longer be opened");
    else if (k->drive_device != (uint64_t)st.st_dev || k->drive.rate <= 0) {
        k->drive_device = 0;
        if (!calibrate_known(fd, e->opt.state_dir, &k->drive))
            r = measure_drive(e, fd, m);
        if (r >= 0)
            k->drive_device = (uint64_t)st.st_dev;
    }
    if (fd >= 0)
        close(fd);
    return k->drive_device && k->drive_device == (uint64_t)st.st_dev ? &k->drive : NULL;
}

/*
 * The rate at which all parts would be read one after another: a layer lies in
 * one part as a rule, so that the drives take turns.
 */
static void know_drives(struct engine *e, const struct outlook *o, struct machine *m)
{
    double bytes = 0, seconds = 0, of_slices = 0, wait = 0, cpu = 0;

    for (size_t i = 0; i < o->n_parts; i++) {
        const struct outlook_part *p = &o->parts[i];
        const struct calibration *c;

        if (p->bytes <= 0)
            continue;
        c = know_drive(e, p->path, m);
        if (!c || c->rate <= 0)
            return;
        bytes += p->bytes;
        seconds += p->bytes / c->rate;
        of_slices += p->bytes / calibrate_rate(c, o->work.slice_bytes);
        wait += p->bytes * c->wait_s;
        cpu += p->bytes * c->cpu_s_per_gib;
    }
    if (seconds <= 0)
        return;
    m->drive_rate = bytes / seconds;
    m->slice_rate = bytes / of_slices;
    m->drive_wait_s = wait / bytes;
    m->cpu_s_per_gib = cpu / bytes;
}

/* -- the answer ------------------------------------------------------------------------------------ */

static json_t *tiers_json(const struct forecast_tiers *t)
{
    return json_pack("{s:f, s:f, s:f, s:f, s:f}", "resident", t->resident, "streamed", t->streamed,
                     "expert_hits", t->expert_hits, "expert_misses", t->expert_misses, "kv", t->kv);
}

static json_t *side_json(const struct forecast_side *s)
{
    if (s->per_s <= 0)
        return json_null();
    return json_pack("{s:f, s:s, s:f, s:f, s:f, s:f, s:f}", "tokens_per_second", s->per_s, "limit",
                     forecast_limit_name(s->limit), "compute_ms", s->matrix_s * 1e3, "memory_ms",
                     s->ram_s * 1e3, "drive_ms", s->read_s * 1e3, "wait_ms", s->wait_s * 1e3,
                     "read_bytes", s->read_bytes);
}

static void add_speed(struct engine *e, struct job *j, bool measure)
{
    struct outlook *o = j->outlook;
    bool whole = placement_is_whole(&o->placement);
    struct hits hits = hits_of(e, j);
    struct machine m = {.measure = measure};
    struct forecast f;
    json_t *speed;

    know_kernels(e, &o->work, &m);
    if (!whole)
        know_drives(e, o, &m);
    forecast(&(struct forecast_input){.work = &o->work,
                                      .placement = &o->placement,
                                      .gauge = &e->worker.rates.gauge,
                                      .n_ctx = o->n_ctx,
                                      .n_batch = o->n_batch,
                                      .drive_rate = m.drive_rate,
                                      .slice_rate = m.slice_rate,
                                      .drive_wait_s = m.drive_wait_s,
                                      .cpu_s_per_gib = m.cpu_s_per_gib,
                                      .hit_rate = hits.rate,
                                      .chosen = hits.chosen},
             &f);
    free(hits.chosen);
    speed = json_pack("{s:I, s:o, s:o, s:o, s:f, s:f, s:b}", "depth", (json_int_t)f.depth, "decode",
                      side_json(&f.decode), "prefill", side_json(&f.prefill), "per_token",
                      tiers_json(&f.tiers), "ram_mb_per_s",
                      gauge_ram_rate(&e->worker.rates.gauge) / 1e6, "drive_mb_per_s",
                      m.drive_rate / 1e6, "measured_now", m.measured_now);
    if (o->info.pooling) /* it writes nothing */
        json_object_del(speed, "decode");
    if (o->work.n_units && !whole) {
        json_object_set_new(speed, "slice_mb_per_s", json_real(m.slice_rate / 1e6));
        json_object_set_new(speed, "drive_wait_ms", json_real(m.drive_wait_s * 1e3));
        json_object_set_new(speed, "hit_rate", json_real(hits.rate));
        json_object_set_new(speed, "hit_rate_from", json_string(hits.from));
        json_object_set_new(speed, "hit_rate_tokens", json_real(hits.tokens));
    }
    json_object_set_new(speed, "why", *m.why ? json_string(m.why) : json_null());
    json_object_set_new(o->result, "read_per_token", json_real(whole ? 0 : f.decode.read_bytes));
    json_object_set_new(o->result, "speed", speed);
}

static void tell(struct engine *e, struct job *j, bool measure)
{
    json_t *result;

    if (!work_cancelled(&j->work))
        add_speed(e, j, measure);
    result = j->outlook->result;
    j->outlook->result = NULL;
    events_job_done(e, j, result, NULL);
}

void jobs_run_plan(struct engine *e, struct job *take_job)
{
    tell(e, take_job, true);
}

/*
 * What has to be measured for a plan is work: it takes seconds, in which mail is
 * read.  But a plan waits for no work but another plan's, so beside what runs or
 * waits nothing is measured.
 */
void jobs_plan(struct letter *l, void *engine)
{
    struct engine *e = engine;
    struct job *j = job_of((struct work *)l);

    if (e->worker.running && e->worker.running->kind == WORK_PLAN)
        worker_take(l, engine);
    else if (e->worker.running || e->worker.queue.first || e->worker.stop)
        tell(e, j, false);
    else
        worker_run(e, &j->work);
}

static bool others_wait(const struct engine *e)
{
    for (const struct work *w = e->worker.queue.first; w; w = w->next)
        if (w->kind != WORK_PLAN)
            return true;
    return false;
}

void jobs_next_plan(struct engine *e)
{
    struct work *w = e->worker.queue.first;

    while (w && w->kind != WORK_PLAN)
        w = w->next;
    if (!w)
        return;
    queue_remove(&e->worker.queue, w);
    if (others_wait(e)) {
        tell(e, job_of(w), false);
        jobs_next_plan(e);
    } else {
        worker_run(e, w);
    }
}
