/* Requests as plain data, and the work items that carry them; see engine.h and work.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/engine/outlook.h"
#include "daemon/engine/verify.h"
#include "daemon/engine/work.h"

static const char *const step_names[] = {
#define STEP(name, text) #name,
#include "daemon/engine/steps.def"
#undef STEP
};

const char *request_step_name(enum request_step s)
{
    return (unsigned)s < STEP_COUNT ? step_names[s] : "?";
}

const char *request_kind_name(enum request_kind k)
{
    static const char *const names[] = {[REQUEST_CHAT] = "chat",
                                        [REQUEST_COMPLETION] = "completion",
                                        [REQUEST_EMBEDDING] = "embedding"};

    return (unsigned)k < ARRAY_LEN(names) ? names[k] : "?";
}

const char *finish_name(enum finish f)
{
    static const char *const names[] = {
        [FINISH_STOP] = "stop",
        [FINISH_LENGTH] = "length",
        [FINISH_TOOL_CALLS] = "tool_calls",
    };

    return (unsigned)f < ARRAY_LEN(names) ? names[f] : "?";
}

const char *model_state_name(enum model_state s)
{
    static const char *const names[] = {
        [MODEL_LISTED] = "listed",     [MODEL_LOADING] = "loading", [MODEL_READY] = "ready",
        [MODEL_DRAINING] = "draining", [MODEL_FAILED] = "failed",
    };

    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "?";
}

const char *model_stage_name(enum model_stage s)
{
    static const char *const names[] = {
        [STAGE_WHOLE] = "whole",
        [STAGE_CACHES] = "caches",
        [STAGE_WEIGHTS] = "weights",
        [STAGE_CLOSING] = "closing",
    };

    return (unsigned)s < ARRAY_LEN(names) ? names[s] : "?";
}

struct request *request_create(enum request_kind kind)
{
    struct request *r = XNEW(struct request);

    r->kind = kind;
    r->max_tokens = -1;
    r->n = 1;
    r->keep_alive_ms = INT64_MIN;
    sampling_defaults(&r->sampling);
    return r;
}

void request_destroy(struct request *r)
{
    if (!r)
        return;
    free(r->model);
    json_decref(r->messages);
    json_decref(r->tools);
    json_decref(r->template_kwargs);
    free(r->prompt);
    free(r->prompt_ids);
    for (size_t i = 0; i < r->n_inputs; i++) {
        free(r->inputs[i].text);
        free(r->inputs[i].ids);
    }
    free(r->inputs);
    for (unsigned i = 0; i < r->n_stops; i++)
        free(r->stop[i].text);
    for (unsigned i = 0; i < r->sampling.n_dry_breakers; i++)
        free(r->sampling.dry_breakers[i]);
    free(r->sampling.bias);
    free(r);
}

static void work_init(struct work *w, enum work_kind kind, struct slot *slot)
{
    w->kind = kind;
    w->slot = slot;
    w->arrived_ms = clock_ms();
}

struct task *task_create(struct request *take_request, struct slot *slot, const char *model)
{
    struct task *t = XNEW(struct task);

    work_init(&t->work, WORK_REQUEST, slot);
    t->req = take_request;
    t->submitted_us = clock_us();
    strncpy(t->model, model, sizeof t->model - 1);
    atomic_init(&t->stat_step, STEP_QUEUED);
    atomic_init(&t->stat_order, UINT32_MAX);
    return t;
}

void task_destroy(struct task *t)
{
    if (!t)
        return;
    request_destroy(t->req);
    free(t);
}

struct job *job_create(enum work_kind kind, struct slot *slot, const char *target)
{
    struct job *j = XNEW(struct job);

    work_init(&j->work, kind, slot);
    j->target = xstrdup(target);
    j->ttl_ms = -1;
    j->pin = -1;
    return j;
}

void job_destroy(struct job *j)
{
    if (!j)
        return;
    free(j->target);
    free(j->name);
    free(j->kv);
    free(j->trace);
    free(j->offers.list);
    if (j->charged_bytes)
        ledger_release(j->charged_to, POOL_RAM, ACCOUNT_REQUESTS, j->charged_bytes);
    outlook_destroy(j->outlook);
    verify_destroy(j->verify);
    free(j);
}
