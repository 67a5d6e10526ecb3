/* Opens the rooms in order, runs the loop, closes them in reverse. */
#include <event2/event.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "backends/backend.h"
#include "common/alloc.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/thread.h"
#include "common/units.h"
#include "daemon/control/control.h"
#include "daemon/ease.h"
#include "daemon/engine/engine.h"
#include "daemon/http/http.h"
#include "daemon/known.h"
#include "daemon/memory/ledger.h"
#include "daemon/memory/probe.h"
#include "daemon/service/service.h"
#include "daemon/settings.h"

/* A reload that waits for models to give back memory. */
struct reload {
    struct settings fresh;
    json_t *restart; /* NULL: none waits */
    int64_t job;     /* of the engine */
    size_t old_budget;
    reloaded_fn *done; /* NULL: who asked has left */
    void *arg;
    bool again; /* a signal came meanwhile */
};

struct rnbd {
    int argc;
    char **argv;
    struct settings settings;
    struct probe_machine machine;
    size_t cut_bytes; /* there were when the budget had to be cut; 0: it had not */
    struct ledger *ledger;
    struct device device;
    struct backend *backend;
    struct event_base *base;
    struct engine *engine;
    struct control *control;
    struct http *http;
    struct event *engine_event;
    struct event *tick;
    struct ease *ease; /* NULL: the budget stays as it was set */
    struct service_signals *signals;
    struct service_watchdog *watchdog;
    struct reload reload;
    int64_t started_ms;
    int64_t stop_at_ms; /* 0: not stopping */
};

/* How often status lines and a stop in progress are looked at. */
#define TICK_MS 250L

#define MOST_DESCRIPTORS 65536

static void on_engine(evutil_socket_t fd, short what, void *arg)
{
    struct rnbd *d = arg;

    (void)fd;
    (void)what;
    engine_dispatch(d->engine);
}

static bool is_alive(void *arg)
{
    struct rnbd *d = arg;

    return clock_ms() - engine_heartbeat_ms(d->engine) < service_watchdog_ms();
}

static void stop(void *arg, bool again)
{
    struct rnbd *d = arg;
    char buf[32];

    if (again) {
        event_base_loopbreak(d->base);
        return;
    }
    if (d->stop_at_ms)
        return;
    d->stop_at_ms = clock_ms() + d->settings.stop_timeout_ms;
    log_notice("stopping", "running work may go on for %s",
               units_format_time_ms(d->settings.stop_timeout_ms, buf, sizeof buf));
    service_stopping();
    engine_drain(d->engine);
    if (d->http)
        http_stop_accepting(d->http);
    control_stop_accepting(d->control);
}

static void on_shutdown(void *arg)
{
    stop(arg, false);
}

static void status_line(struct rnbd *d)
{
    struct request_info running[1];
    size_t n_models = engine_models(d->engine, NULL, 0);
    size_t n_requests = engine_requests(d->engine, running, 1);

    if (n_requests)
        service_status("%s for %s, %zu waiting", request_step_name(running[0].step),
                       running[0].model, n_requests - 1);
    else
        service_status("ready, %zu known models", n_models);
}

static void on_tick(evutil_socket_t fd, short what, void *arg)
{
    struct rnbd *d = arg;

    (void)fd;
    (void)what;
    status_line(d);
    ease_tick(d->ease);
    if (d->stop_at_ms && (engine_idle(d->engine) || clock_ms() >= d->stop_at_ms))
        event_base_loopexit(d->base, NULL);
}

/* -- memory that there is ------------------------------------------------------------------ */

/* A cgroup's limit can change at any time, and nobody tells: it is read again before it counts. */
static void probe(void *arg)
{
    struct rnbd *d = arg;
    struct probe_machine now;
    char was[32], is[32];
    struct err err;

    if (probe_machine("", &now, &err) < 0) {
        log_warning("counts on the memory that there was before:", "%s", err.text);
        return;
    }
    if (now.usable_bytes != d->machine.usable_bytes) {
        log_notice("other memory than before", "usable=%s was=%s limit='%s'",
                   units_format_size(now.usable_bytes, is, sizeof is),
                   units_format_size(d->machine.usable_bytes, was, sizeof was), now.cgroup_path);
        if (now.usable_bytes < ledger_budget(d->ledger, POOL_RAM))
            d->cut_bytes = now.usable_bytes;
        ledger_set_capacity(d->ledger, POOL_RAM, now.usable_bytes);
    }
    d->machine = now;
}

/* -- reload -------------------------------------------------------------------------------- */

static void note_restart(void *arg, const char *section, const char *key, bool live)
{
    if (!live)
        json_array_append_new(arg, json_sprintf("%s.%s", section, key));
}

/* What is in force of the models is what server.status prints. */
static void exchange_models(struct settings *now, struct settings *fresh)
{
    struct settings old = *now;

    now->models = fresh->models;
    now->n_models = fresh->n_models;
    now->cap_models = fresh->cap_models;
    now->models_dir = fresh->models_dir;
    fresh->models = old.models;
    fresh->n_models = old.n_models;
    fresh->cap_models = old.cap_models;
    fresh->models_dir = old.models_dir;
}

/* As the setting says; a kernel that does not tell is no reason not to serve. */
static void watch_pressure(struct rnbd *d)
{
    struct err err;

    if (!d->settings.give_way) {
        ease_end(d->ease);
        d->ease = NULL;
    } else if (!d->ease && ease_create(d->engine, d->ledger, &d->ease, &err) < 0) {
        log_notice("the budget stays as it is when memory is short", "reason=\"%s\"", err.text);
    }
}

static void on_budget_progress(void *arg, const char *step, size_t done, size_t total)
{
    (void)arg, (void)step, (void)done, (void)total;
}

static void on_budget_undone(void *arg, json_t *result, const struct err *error)
{
    (void)arg;
    (void)result;
    if (error)
        log_warning("the budget that was before a reload is not in force:", "%s", error->text);
}

/* Models may have grown into it; unless somebody has chosen another meanwhile. */
static void undo_budget(struct rnbd *d, const struct settings *fresh, size_t old_budget)
{
    struct job_sink sink = {on_budget_progress, on_budget_undone, NULL};
    struct err err;

    if (fresh->ram_bytes != d->settings.ram_bytes &&
        ledger_budget(d->ledger, POOL_RAM) == fresh->ram_bytes &&
        !engine_budget_waits(d->engine, 0) &&
        engine_set_budget(d->engine, old_budget, BUDGET_KEEP, &sink, &err) < 0)
        on_budget_undone(NULL, NULL, &err);
}

/* With the budget that fresh wants in force already: all of the rest, or nothing and the old budget. */
static int apply_rest(struct rnbd *d, struct settings *fresh, size_t old_budget, struct err *err)
{
    int r = d->http ? http_reload_keys(d->http, err) : 0;

    if (r == 0)
        r = known_apply(fresh, d->engine, err);
    if (r < 0) {
        undo_budget(d, fresh, old_budget);
        return r;
    }
    exchange_models(&d->settings, fresh);
    log_set_level((enum log_level)fresh->log_level);
    d->settings.log_level = fresh->log_level;
    d->settings.ram_bytes = fresh->ram_bytes;
    d->settings.stop_timeout_ms = fresh->stop_timeout_ms;
    d->settings.give_way = fresh->give_way;
    d->cut_bytes = 0;
    watch_pressure(d);
    return 0;
}

static void on_hangup(void *arg);

/* With the budget settled, or refused (r): the end of it is told. */
static void end_reload(struct rnbd *d, int r, struct err *err)
{
    struct reload now = d->reload;

    if (r == 0)
        r = apply_rest(d, &now.fresh, now.old_budget, err);
    settings_clear(&now.fresh);
    d->reload = (struct reload){0};
    service_ready();
    if (now.done)
        now.done(now.arg, now.restart, r < 0 ? err : NULL);
    json_decref(now.restart);
    if (now.again)
        on_hangup(d);
}

static void on_budget_set(void *arg, json_t *result, const struct err *error)
{
    struct rnbd *d = arg;
    struct err err;

    if (error)
        err = *error;
    else
        d->reload.old_budget = (size_t)json_integer_value(json_object_get(result, "was"));
    end_reload(d, error ? -(int)error->kind : 0, &err);
}

/*
 * What can be refused comes first, the budget before all: below what is in use
 * models give back what they hold above their floors, which is ENGINE's work and
 * takes as long as a layer.  1: it is at it.
 */
static int settle_budget(struct rnbd *d, struct err *err)
{
    struct job_sink sink = {on_budget_progress, on_budget_set, d};
    size_t bytes = d->reload.fresh.ram_bytes;
    /* One below what there was has been chosen since, and stays. */
    bool cut = d->cut_bytes && ledger_budget(d->ledger, POOL_RAM) >= d->cut_bytes;

    if (bytes == d->settings.ram_bytes && !cut)
        return 0;
    d->reload.job = engine_set_budget(d->engine, bytes, BUDGET_KEEP, &sink, err);
    return d->reload.job < 0 ? (int)d->reload.job : 1;
}

static void reload(void *arg, reloaded_fn *done, void *done_arg)
{
    struct rnbd *d = arg;
    struct err err;
    int r;

    if (d->reload.restart) {
        err_set(&err, ERR_BUSY,
                "a reload waits for models to give back memory already; try again later");
        done(done_arg, NULL, &err);
        return;
    }
    service_reloading();
    d->reload = (struct reload){.restart = json_array(), .done = done, .arg = done_arg};
    probe(d);
    r = settings_read(d->argc, d->argv, d->machine.usable_bytes, &d->reload.fresh, &err);
    if (r == 0) {
        settings_diff(&d->settings, &d->reload.fresh, note_restart, d->reload.restart);
        r = known_check(&d->reload.fresh, &err);
    }
    if (r == 0)
        r = settle_budget(d, &err);
    if (r != 1)
        end_reload(d, r, &err);
}

static void forget_reload(void *arg, void *done_arg)
{
    struct rnbd *d = arg;

    if (d->reload.arg == done_arg)
        d->reload.done = NULL;
}

static void log_reloaded(void *arg, json_t *restart, const struct err *error)
{
    (void)arg;
    if (error)
        log_warning("kept the old configuration:", "%s", error->text);
    else
        log_notice("read the configuration again", "keys_that_need_a_restart=%zu",
                   json_array_size(restart));
}

static void on_hangup(void *arg)
{
    struct rnbd *d = arg;

    if (d->reload.restart)
        d->reload.again = true;
    else
        reload(d, log_reloaded, d);
}

static json_t *describe(void *arg)
{
    struct rnbd *d = arg;
    struct str text = {0};
    json_t *o;

    settings_print(&d->settings, &text);
    o = json_pack("{s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:b, s:s}", "version",
                  RNBD_VERSION, "pid", (json_int_t)getpid(), "uptime_ms",
                  (json_int_t)(clock_ms() - d->started_ms), "device", d->device.name,
                  "device_detail", d->device.detail, "socket", d->settings.control.socket, "listen",
                  d->settings.http.listen, "port", d->http ? (int)http_port(d->http) : 0,
                  "ram_bytes", (json_int_t)d->machine.ram_bytes, "usable_bytes",
                  (json_int_t)d->machine.usable_bytes, "stopping", d->stop_at_ms != 0, "config",
                  str_text(&text));
    str_clear(&text);
    return o;
}

/* -- start and stop -------------------------------------------------------------------------- */

static int open_compute(struct rnbd *d, struct err *err)
{
    struct settings *s = &d->settings;
    int r;

    d->ledger = ledger_create();
    ledger_set_capacity(d->ledger, POOL_RAM, d->machine.usable_bytes);
    r = ledger_set_budget(d->ledger, POOL_RAM, s->ram_bytes, err);
    if (r < 0)
        return r;
    r = backend_probe(&d->device, 1, err);
    if (r < 0)
        return r;
    if (r == 0)
        return err_set(err, ERR_UNSUPPORTED, "this build has no device that can compute");
    r = d->device.ops->open(&d->device, &s->backend, &d->backend, err);
    if (r < 0)
        return r;
    d->device.ops->describe(d->backend, &d->device);
    s->engine.ledger = d->ledger;
    s->engine.backend_ops = d->device.ops;
    s->engine.backend = d->backend;
    r = engine_create(&s->engine, &d->engine, err);
    return r < 0 ? r : known_apply(s, d->engine, err);
}

static int open_faces(struct rnbd *d, struct err *err)
{
    struct control_hooks hooks = {d, on_shutdown, probe, reload, forget_reload, describe};
    struct settings *s = &d->settings;
    struct service_sockets inherited;
    char *key_file;
    int r = service_inherit(&inherited, err);

    if (r < 0)
        return r;
    s->http.inherited_fd = inherited.http;
    s->control.inherited_fd = inherited.control;
    key_file = *s->http.key_file ? NULL : service_credential("api-key");
    if (key_file) {
        free(s->http.key_file);
        s->http.key_file = key_file;
    }
    r = control_create(&s->control, &hooks, d->base, d->engine, &d->control, err);
    if (r < 0)
        return r;
    if (!*s->http.listen && !*s->http.unix_socket && inherited.http < 0)
        return 0;
    return http_create(&s->http, d->base, d->engine, &d->http, err);
}

/* Each client is a descriptor: as many as the system lets us have, where the usual limit is lower. */
static void raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= limit.rlim_max)
        return;
    limit.rlim_cur = MIN(limit.rlim_max, MOST_DESCRIPTORS);
    setrlimit(RLIMIT_NOFILE, &limit);
}

static int open_rooms(struct rnbd *d, struct err *err)
{
    struct timeval every = {.tv_usec = TICK_MS * 1000};
    int r = open_compute(d, err);

    if (r < 0)
        return r;
    raise_descriptors();
    d->base = event_base_new();
    if (!d->base)
        return err_set(err, ERR_INTERNAL, "libevent has no way to wait for events here");
    d->signals = service_signals_start(d->base, stop, on_hangup, d);
    r = open_faces(d, err);
    if (r < 0)
        return r;
    d->engine_event = event_new(d->base, engine_fd(d->engine), EV_READ | EV_PERSIST, on_engine, d);
    event_add(d->engine_event, NULL);
    d->tick = event_new(d->base, -1, EV_PERSIST, on_tick, d);
    event_add(d->tick, &every);
    watch_pressure(d);
    d->watchdog = service_watchdog_start(d->base, is_alive, d);
    return 0;
}

static void close_rooms(struct rnbd *d)
{
    service_watchdog_stop(d->watchdog);
    if (d->tick)
        event_free(d->tick);
    if (d->engine_event)
        event_free(d->engine_event);
    http_destroy(d->http);
    control_destroy(d->control);
    service_signals_stop(d->signals);
    ease_destroy(d->ease);
    engine_destroy(d->engine);
    if (d->backend)
        d->device.ops->close(d->backend);
    if (d->base)
        event_base_free(d->base);
    ledger_destroy(d->ledger);
    settings_clear(&d->reload.fresh);
    json_decref(d->reload.restart);
    settings_clear(&d->settings);
    libevent_global_shutdown();
}

static void announce(struct rnbd *d)
{
    char budget[32];

    log_notice("ready", "version=%s device=%s (%s) budget=%s socket='%s' http='%s'", RNBD_VERSION,
               d->device.name, d->device.detail,
               units_format_size(d->settings.ram_bytes, budget, sizeof budget),
               d->settings.control.socket, d->settings.http.listen);
    status_line(d);
    service_ready();
}

/* --check-config and --print-config.  Returns the exit status, or -1 to go on. */
static int only_look(const struct rnbd *d)
{
    struct str text = {0};

    if (d->settings.print_only) {
        settings_print(&d->settings, &text);
        fputs(str_text(&text), stdout);
        str_clear(&text);
        return EXIT_SUCCESS;
    }
    if (d->settings.check_only) {
        printf("rnbd: the configuration is fine (%s)\n",
               d->settings.config_file ? d->settings.config_file : "no configuration file");
        return EXIT_SUCCESS;
    }
    return -1;
}

/*
 * What is freed is gone from RSS, within a few of these per arena.  Left alone, malloc moves both bounds up to twice
 * the largest mapped block that was ever freed (32 and 64 MiB), so that each arena may keep as much.  128 KiB is where
 * malloc begins, and what the ledger's sums of page-rounded blocks are tested with; some MiB stay, or an arena would ask
 * the kernel for pages while a token is computed.  The loop, the engine and IO each have an arena, and what else
 * allocates is rare.
 */
static void bound_heap(void)
{
    /* NOLINTBEGIN(concurrency-mt-unsafe): before any thread */
    mallopt(M_MMAP_THRESHOLD, 128 << 10);
    mallopt(M_TRIM_THRESHOLD, 4 << 20);
    mallopt(M_ARENA_MAX, 3);
    /* NOLINTEND(concurrency-mt-unsafe) */
}

int main(int argc, char **argv)
{
    struct rnbd d = {.argc = argc, .argv = argv, .started_ms = clock_ms()};
    struct err err;
    int status, r;

    bound_heap();
    log_init(LOG_LEVEL_INFO);
    thread_take_role(THREAD_LOOP, "rnbd");
    r = probe_machine("", &d.machine, &err);
    if (r == 0)
        r = settings_read(argc, argv, d.machine.usable_bytes, &d.settings, &err);
    if (r != 0) {
        if (r < 0)
            fprintf(stderr, "rnbd: %s\n", err.text);
        return r < 0 ? 2 : EXIT_SUCCESS;
    }
    status = only_look(&d);
    if (status >= 0) {
        settings_clear(&d.settings);
        return status;
    }
    log_set_level((enum log_level)d.settings.log_level);
    r = open_rooms(&d, &err);
    if (r < 0) {
        log_error("cannot start:", "%s", err.text);
        close_rooms(&d);
        return EXIT_FAILURE;
    }
    announce(&d);
    event_base_dispatch(d.base);
    close_rooms(&d);
    log_notice("stopped", "version=%s", RNBD_VERSION);
    return EXIT_SUCCESS;
}
