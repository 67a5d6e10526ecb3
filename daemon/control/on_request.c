/* Methods about requests: list, cancel, generate, bench. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/json.h"
#include "daemon/control/control_priv.h"

int on_request_list(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct engine *e = c->peer->control->engine;
    size_t n = engine_requests(e, NULL, 0);
    struct request_info *list = XNEW_ARRAY(struct request_info, n);
    json_t *requests = json_array();

    (void)params;
    (void)err;
    n = MIN(n, engine_requests(e, list, n));
    for (size_t i = 0; i < n; i++)
        json_array_append_new(
            requests,
            json_pack("{s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:I}", "id", (json_int_t)list[i].id,
                      "kind", request_kind_name(list[i].kind), "step",
                      request_step_name(list[i].step), "model", list[i].model, "client",
                      list[i].client, "prompt_tokens", (json_int_t)list[i].prompt_tokens,
                      "done_tokens", (json_int_t)list[i].done_tokens, "age_ms",
                      (json_int_t)list[i].age_ms));
    free(list);
    *ret_result = json_pack("{s:o}", "requests", requests);
    return 1;
}

int on_request_cancel(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    int64_t id = 0;
    int r = json_get_int(params, "id", 1, INT64_MAX, &id, err);

    if (r >= 0)
        r = engine_cancel(c->peer->control->engine, (uint64_t)id, err);
    if (r < 0)
        return r;
    *ret_result = json_object();
    return 1;
}

/* -- generate ------------------------------------------------------------------------------------------ */

static int read_sampling(struct request *q, const json_t *params, struct err *err)
{
    int64_t seed = 0;
    int r = request_read_numbers(q, params, err);

    if (r >= 0)
        r = json_get_int(params, "seed", 0, INT64_MAX, &seed, err);
    if (r == 1) {
        q->sampling.seed = (uint64_t)seed;
        q->given |= 1u << SAMPLING_FIELD_seed;
    }
    if (r >= 0)
        r = json_get_int(params, "max_tokens", 1, INT32_MAX, &q->max_tokens, err);
    if (r >= 0)
        r = json_get_bool(params, "ignore_eos", &q->ignore_eos, err);
    return r;
}

static int read_stops(struct request *q, const json_t *list, struct err *err)
{
    size_t i;
    json_t *item;

    json_array_foreach(list, i, item)
    {
        if (!json_is_string(item) || json_string_length(item) == 0 || i == REQUEST_MAX_STOPS)
            return err_set_param(err, ERR_INVALID, "stop",
                                 "'stop' must be at most %d texts that are not empty",
                                 REQUEST_MAX_STOPS);
        q->stop[q->n_stops].text =
            view_dup((struct view){json_string_value(item), json_string_length(item)});
        q->stop[q->n_stops++].len = json_string_length(item);
    }
    return 0;
}

static int read_generate(const json_t *params, struct request **ret, struct err *err)
{
    const json_t *messages = json_object_get(params, "messages");
    const char *model = NULL, *prompt = NULL;
    struct request *q;
    int r = json_get_string(params, "model", &model, err);

    if (r >= 0)
        r = json_get_string(params, "prompt", &prompt, err);
    if (r < 0)
        return r;
    if (!prompt == !json_is_array(messages))
        return err_set(err, ERR_INVALID, "generate needs either 'prompt' or 'messages'");
    q = request_create(prompt ? REQUEST_COMPLETION : REQUEST_CHAT);
    q->model = xstrdup(model);
    q->prompt = xstrdup(prompt);
    q->prompt_len = prompt ? strlen(prompt) : 0;
    q->messages = prompt ? NULL : json_deep_copy(messages);
    q->split_reasoning = true;
    q->return_progress = true;
    r = read_sampling(q, params, err);
    if (r >= 0)
        r = read_stops(q, json_object_get(params, "stop"), err);
    if (r >= 0)
        r = sampling_check(&q->sampling, err);
    if (r < 0) {
        request_destroy(q);
        return r;
    }
    *ret = q;
    return 0;
}

/* Like a wrong byte, a NUL that a model generates becomes U+FFFD: no string of a call may hold one. */
static json_t *text_without_nul(const char *p, size_t n)
{
    struct str clean = {0};
    json_t *text;

    for (size_t i = 0; i < n; i++)
        if (p[i])
            str_add(&clean, &p[i], 1);
        else
            str_adds(&clean, "\xEF\xBF\xBD");
    text = json_text(str_text(&clean), clean.len);
    str_clear(&clean);
    return text;
}

static json_t *json_of_timings(const struct request_timings *t)
{
    json_t *o =
        json_pack("{s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:I, s:I, s:f}", "queue_ms", t->queue_ms,
                  "load_ms", t->load_ms, "prefill_ms", t->prefill_ms, "decode_ms", t->decode_ms,
                  "ttft_ms", t->ttft_ms, "pp_per_second", t->pp_per_s, "tg_per_second", t->tg_per_s,
                  "bytes_read", (json_int_t)t->bytes_read, "bytes_wanted",
                  (json_int_t)t->bytes_wanted, "wait_ms", t->wait_ms);

    json_object_set_new(o, "hit_rate",
                        t->uses ? json_real((double)t->hits / (double)t->uses) : json_null());
    return o;
}

static json_t *json_of_end(const struct call *c, const struct event *ev, const char *finish)
{
    return json_pack(
        "{s:o, s:o, s:s, s:s, s:{s:I, s:I, s:I, s:I}, s:o}", "text",
        text_without_nul(str_text(&c->text), c->text.len), "reasoning",
        text_without_nul(str_text(&c->reasoning), c->reasoning.len), "finish", finish, "model",
        ev->model ? ev->model : "", "usage", "prompt_tokens", (json_int_t)ev->usage.prompt_tokens,
        "cached_tokens", (json_int_t)ev->usage.cached_tokens, "completion_tokens",
        (json_int_t)ev->usage.completion_tokens, "reasoning_tokens",
        (json_int_t)ev->usage.reasoning_tokens, "timings", json_of_timings(&ev->timings));
}

static void on_text(struct call *c, const struct event *ev, const char *kind)
{
    str_add(ev->kind == EVENT_REASONING ? &c->reasoning : &c->text, ev->text.p, ev->text.len);
    call_notify(
        c, "text",
        json_pack("{s:s, s:o}", "kind", kind, "text", text_without_nul(ev->text.p, ev->text.len)));
}

static void on_event(void *arg, const struct event *ev)
{
    struct call *c = arg;

    switch (ev->kind) {
    case EVENT_TEXT: on_text(c, ev, "text"); break;
    case EVENT_REASONING: on_text(c, ev, "reasoning"); break;
    case EVENT_TOOL_CALL: on_text(c, ev, "tool_call"); break;
    case EVENT_PROGRESS:
        call_progress(c, request_step_name(ev->step), ev->progress, ev->total);
        break;
    case EVENT_DONE: call_done(c, json_of_end(c, ev, finish_name(ev->finish))); break;
    case EVENT_FAILED: call_failed(c, ev->error); break;
    default: break;
    }
}

int on_generate(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct engine *e = c->peer->control->engine;
    struct request *q;
    int r = engine_charge(e, c->tree, "a control call", err); /* the copies that q keeps */

    (void)ret_result;
    if (r < 0)
        return r;
    r = read_generate(params, &q, err);
    engine_discharge(e, c->tree); /* engine_submit reserves it, for as long as q lives */
    if (r < 0)
        return r;
    q->bytes = c->tree + sizeof *q;
    snprintf(q->client, sizeof q->client, "rpc pid %d", (int)c->peer->who.pid);
    return engine_submit(e, q, on_event, c, &c->request, err);
}

/* An array of numbers; without one, depth 0 alone. */
static int get_depths(const json_t *params, struct bench_spec *spec, struct err *err)
{
    const json_t *list = json_object_get(params, "depths"), *item;
    size_t i;

    spec->n_depths = 1;
    if (!list)
        return 0;
    if (!json_is_array(list) || json_array_size(list) < 1 ||
        json_array_size(list) > BENCH_DEPTHS_MAX)
        return err_set_param(err, ERR_INVALID, "depths", "'depths' must be 1 to %d numbers",
                             BENCH_DEPTHS_MAX);
    json_array_foreach(list, i, item)
    {
        if (!json_is_integer(item) || json_integer_value(item) < 0 ||
            json_integer_value(item) > 1 << 24)
            return err_set_param(err, ERR_INVALID, "depths",
                                 "each of 'depths' must be a number from 0 to %d", 1 << 24);
        spec->depths[i] = (size_t)json_integer_value(item);
    }
    spec->n_depths = (unsigned)json_array_size(list);
    return 0;
}

int on_bench_run(struct call *c, const json_t *params, json_t **ret_result, struct err *err)
{
    struct job_sink sink = call_sink(c);
    int64_t prompt = 512, gen = 64, repeats = 5, job;
    struct bench_spec spec = {0};
    const char *target = NULL;
    int r = json_get_string(params, "target", &target, err);

    (void)ret_result;
    if (r >= 0)
        r = json_get_int(params, "prompt", 0, 1 << 20, &prompt, err);
    if (r >= 0)
        r = json_get_int(params, "gen", 0, 1 << 20, &gen, err);
    if (r >= 0)
        r = get_depths(params, &spec, err);
    if (r >= 0)
        r = json_get_int(params, "repeats", 1, 100, &repeats, err);
    if (r < 0)
        return r;
    spec.n_prompt = (size_t)prompt;
    spec.n_gen = (size_t)gen;
    spec.repeats = (unsigned)repeats;
    job = engine_bench(c->peer->control->engine, target, &spec, &sink, err);
    if (job < 0)
        return (int)job;
    c->job = job;
    return 0;
}
