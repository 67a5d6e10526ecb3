/* Letters up to LOOP: events of requests, progress and ends of jobs; see engine_priv.h. */
#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/engine/engine_priv.h"

/* Past this what a request held has left holes in the heap that are worth giving back. */
#define TRIM_BYTES ((size_t)1 << 20)

struct event_letter {
    struct letter letter;
    struct engine *engine;
    struct event ev;
    struct err error;
    struct sampling_options sampling;
    struct token_logprob *logprobs;
    float *embedding;
    struct str bytes; /* all texts that ev and logprobs point into, one after another */
    char *tool_name, *tool_id, *stop_text;
    char model[128];
    struct task *last_of; /* the task ends with this letter */
};

static struct view keep(struct str *bytes, struct view v)
{
    /* An offset for now: the buffer still moves. */
    struct view at = {(const char *)(uintptr_t)bytes->len, v.len};

    str_add(bytes, v.p, v.len);
    return at;
}

static void settle(const struct str *bytes, struct view *v)
{
    v->p = str_text(bytes) + (uintptr_t)v->p;
}

static void copy_logprobs(struct event_letter *l, const struct event *ev)
{
    if (!ev->n_logprobs)
        return;
    l->logprobs = xmemdup(ev->logprobs, ev->n_logprobs * sizeof *ev->logprobs);
    l->ev.logprobs = l->logprobs;
    for (size_t i = 0; i < ev->n_logprobs; i++) {
        struct token_logprob *t = &l->logprobs[i];

        t->text = keep(&l->bytes, t->text);
        for (unsigned k = 0; k < t->n_top; k++)
            t->top[k].text = keep(&l->bytes, t->top[k].text);
    }
}

static void settle_all(struct event_letter *l)
{
    settle(&l->bytes, &l->ev.text);
    for (size_t i = 0; i < l->ev.n_logprobs; i++) {
        settle(&l->bytes, &l->logprobs[i].text);
        for (unsigned k = 0; k < l->logprobs[i].n_top; k++)
            settle(&l->bytes, &l->logprobs[i].top[k].text);
    }
}

static void event_letter_free(struct event_letter *l)
{
    free(l->logprobs);
    free(l->embedding);
    str_clear(&l->bytes);
    free(l->tool_name);
    free(l->tool_id);
    free(l->stop_text);
    free(l);
}

/* LOOP. */
static void deliver_event(struct letter *letter, void *receiver)
{
    struct event_letter *l = (struct event_letter *)letter;
    struct engine *e = receiver;
    const struct ticket *ticket = engine_ticket(e, l->ev.request);
    event_fn *sink = ticket && !e->dying ? ticket->sink : NULL;
    void *arg = ticket ? ticket->arg : NULL;
    size_t held = l->last_of ? l->last_of->req->bytes : 0;

    /* The sink may call the engine: the ticket is closed first, and not looked at again. */
    if (l->last_of)
        engine_close_ticket(e, l->ev.request);
    if (sink)
        sink(arg, &l->ev);
    if (l->last_of) /* its answer has been written down by now */
        ledger_release(e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, l->last_of->req->bytes);
    task_destroy(l->last_of);
    event_letter_free(l);
    if (held > TRIM_BYTES)
        malloc_trim(0);
}

static struct event_letter *event_letter_new(struct task *t, const struct event *ev)
{
    struct event_letter *l = XNEW(struct event_letter);

    l->letter.deliver = deliver_event;
    l->ev = *ev;
    l->ev.request = t->work.id;
    memcpy(l->model, t->model, sizeof l->model);
    l->ev.model = l->model;
    l->ev.text = keep(&l->bytes, ev->text);
    copy_logprobs(l, ev);
    settle_all(l);
    if (ev->n_embedding) {
        l->embedding = xmemdup(ev->embedding, ev->n_embedding * sizeof *ev->embedding);
        l->ev.embedding = l->embedding;
    }
    l->ev.tool_name = l->tool_name = xstrdup(ev->tool_name);
    l->ev.tool_id = l->tool_id = xstrdup(ev->tool_id);
    l->ev.stop_text = l->stop_text = xstrdup(ev->stop_text);
    if (ev->error) {
        l->error = *ev->error;
        l->ev.error = &l->error;
    }
    if (ev->sampling) {
        /* Its arrays are the request's, which lives as long as its last letter. */
        l->sampling = *ev->sampling;
        l->ev.sampling = &l->sampling;
    }
    return l;
}

void events_post(struct engine *e, struct task *t, const struct event *ev)
{
    mailbox_post(e->outbox, &event_letter_new(t, ev)->letter);
}

void events_post_last(struct engine *e, struct task *take_task, const struct event *ev)
{
    struct event_letter *l = event_letter_new(take_task, ev);

    l->last_of = take_task;
    l->ev.charged = &take_task->req->bytes;
    mailbox_post(e->outbox, &l->letter);
}

struct job_letter {
    struct letter letter;
    uint64_t id;
    const char *step; /* of progress: a literal */
    size_t done, total;
    json_t *result;
    struct err error;
    bool failed;
    struct job *last_of;
};

/* A file that was to be loaded by its path and never could be is not a model that is known. */
static void note_outcome(struct engine *e, const struct job_letter *l)
{
    struct slot *s = l->last_of->work.slot;

    if (!s || e->dying || l->last_of->work.kind == WORK_UNLOAD)
        return;
    s->proven = s->proven || !l->failed;
    if (s->transient && !s->proven)
        names_drop(e, s);
}

/* LOOP. */
static void deliver_job(struct letter *letter, void *receiver)
{
    struct job_letter *l = (struct job_letter *)letter;
    struct engine *e = receiver;
    const struct job_ticket *ticket = engine_job_ticket(e, l->id);
    struct job_sink sink = {0};

    if (ticket && !ticket->abandoned && !e->dying)
        sink = ticket->sink;
    if (l->last_of) {
        note_outcome(e, l);
        engine_close_job(e, l->id);
    }
    if (l->last_of && sink.done)
        sink.done(sink.arg, l->result, l->failed ? &l->error : NULL);
    else if (!l->last_of && sink.progress)
        sink.progress(sink.arg, l->step, l->done, l->total);
    json_decref(l->result);
    job_destroy(l->last_of);
    free(l);
}

static struct job_letter *job_letter_new(const struct job *j)
{
    struct job_letter *l = XNEW(struct job_letter);

    l->letter.deliver = deliver_job;
    l->id = j->work.id;
    return l;
}

void events_job_progress(struct engine *e, struct job *j, const char *step, size_t done,
                         size_t total)
{
    struct job_letter *l = job_letter_new(j);

    l->step = step;
    l->done = done;
    l->total = total;
    mailbox_post(e->outbox, &l->letter);
}

void events_job_done(struct engine *e, struct job *take_job, json_t *take_result,
                     const struct err *error)
{
    struct job_letter *l = job_letter_new(take_job);

    l->result = take_result;
    l->failed = error != NULL;
    if (error)
        l->error = *error;
    l->last_of = take_job;
    mailbox_post(e->outbox, &l->letter);
}
