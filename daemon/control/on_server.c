/* Methods about the daemon itself: status, shutdown, reload. */
#include <stdlib.h>

#include "common/alloc.h"
#include "common/log.h"
#include "daemon/control/control_priv.h"

static json_t *json_of_stats(const struct engine_stats *s)
{
    return json_pack(
        "{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:I, s:I, s:I, "
        "s:I, s:f}",
        "requests_done", (json_int_t)s->requests_done, "requests_failed",
        (json_int_t)s->requests_failed, "requests_cancelled", (json_int_t)s->requests_cancelled,
        "requests_refused", (json_int_t)s->requests_refused, "prompt_tokens",
        (json_int_t)s->prompt_tokens, "cached_tokens", (json_int_t)s->cached_tokens,
        "completion_tokens", (json_int_t)s->completion_tokens, "prefill_seconds",
        s->prefill_seconds, "decode_seconds", s->decode_seconds, "queue_seconds", s->queue_seconds,
        "bytes_read", (json_int_t)s->bytes_read, "running", (json_int_t)s->running, "waiting",
        (json_int_t)s->waiting, "loads", (json_int_t)s->loads, "unloads", (json_int_t)s->unloads,
        "bytes_wanted", (json_int_t)s->bytes_wanted, "expert_uses", (json_int_t)s->expert_uses,
        "expert_hits", (json_int_t)s->expert_hits, "wait_seconds", s->wait_seconds);
}

/* One word for what is going on. */
static const char *state_of(const struct engine_stats *s, bool stopping)
{
    return stopping ? "stopping" : s->running ? "working" : "idle";
}

int on_server_status(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct control *ctl = c->peer->control;
    json_t *o = ctl->hooks.status(ctl->hooks.arg);
    json_t *budget = json_of_budget(ctl->engine);
    struct engine_stats stats;

    (void)params;
    (void)err;
    engine_stats(ctl->engine, &stats);
    json_object_set_new(
        o, "state", json_string(state_of(&stats, json_is_true(json_object_get(o, "stopping")))));
    json_object_set_new(o, "engine", json_of_stats(&stats));
    json_object_set(o, "budget", json_object_get(budget, "ram"));
    json_object_set_new(o, "rss", json_integer((json_int_t)engine_rss_bytes(ctl->engine)));
    json_decref(budget);
    *ret_result = o;
    return 1;
}

int on_server_shutdown(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct control *ctl = c->peer->control;

    (void)params;
    (void)err;
    log_notice("stop asked for", "uid=%d pid=%d", (int)c->peer->who.uid, (int)c->peer->who.pid);
    ctl->hooks.shutdown(ctl->hooks.arg);
    *ret_result = json_object();
    return 1;
}

static void on_reloaded(void *arg, json_t *restart, const struct err *error)
{
    struct call *c = arg;

    if (error)
        call_failed(c, error);
    else
        call_done(c, json_pack("{s:O}", "restart", restart));
}

int on_server_reload(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct control *ctl = c->peer->control;

    (void)params;
    (void)ret_result;
    (void)err;
    log_notice("reload asked for", "uid=%d pid=%d", (int)c->peer->who.uid, (int)c->peer->who.pid);
    c->reload = true;
    ctl->hooks.reload(ctl->hooks.arg, on_reloaded, c);
    return 0;
}
