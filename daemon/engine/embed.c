/* Embeddings: each input computed from an empty sequence and pooled; see run.h. */
#include <math.h>
#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/engine/run.h"

/* Bytes that an element takes on its way to the client: the float, its copies, its decimals in JSON. */
#define ELEMENT_BYTES 48

static int check_fits(const struct run *r, size_t index, const char *least, size_t n,
                      struct err *err)
{
    size_t n_ctx = model_n_ctx(r->model);

    if (n <= n_ctx)
        return 0;
    return err_set_param(err, ERR_TOO_LARGE, "input",
                         "input %zu has %s%zu tokens, and the context of '%s' holds %zu; shorten "
                         "it, or load the model with a larger context",
                         index, least, n, r->task->model, n_ctx);
}

static int tokenize(struct run *r, const struct request_input *in, size_t index, struct err *err)
{
    int rc = 0;

    if (!in->ids && r->tokenizer) /* too long however it is cut */
        rc = check_fits(r, index, "at least ", tokenizer_least_ids(r->tokenizer, in->len), err);
    if (rc >= 0)
        rc = in->ids ? prepare_ids(r, "input", in->ids, in->n_ids, err)
                     : prepare_text(r, (struct view){in->text, in->len}, err);
    if (rc >= 0 && r->prompt.n == 0)
        rc = err_set_param(err, ERR_INVALID, "input", "input %zu is empty; give at least one token",
                           index);
    if (rc >= 0)
        rc = check_fits(r, index, "", r->prompt.n, err);
    if (rc < 0)
        return rc;
    r->usage.prompt_tokens += r->prompt.n;
    atomic_store_explicit(&r->task->stat_prompt, r->usage.prompt_tokens, memory_order_relaxed);
    return 0;
}

/* To length 1, as clients compare by dot products; nothing else can be done with a vector of zeros. */
static void normalise(float *v, size_t n)
{
    double sum = 0;

    for (size_t i = 0; i < n; i++)
        sum += (double)v[i] * v[i];
    for (size_t i = 0; sum > 0 && i < n; i++)
        v[i] = (float)(v[i] / sqrt(sum));
}

static int embed_one(struct run *r, size_t index, float *v, struct err *err)
{
    struct event ev = {.kind = EVENT_EMBEDDING, .choice = (unsigned)index, .embedding = v};
    size_t charged = r->charged_requests;
    int64_t began_us = clock_us();
    int rc = tokenize(r, &r->req->inputs[index], index, err);

    if (rc >= 0)
        rc = model_embed(r->model, r->prompt.ids, r->prompt.n, &r->task->work.cancel, v, err);
    if (rc >= 0) {
        r->computed_tokens += r->prompt.n;
        atomic_store_explicit(&r->task->stat_done, r->computed_tokens, memory_order_relaxed);
        normalise(v, r->info.n_embd);
        ev.n_embedding = r->info.n_embd;
        events_post(r->e, r->task, &ev);
    }
    /* The ids of one input are gone before the next. */
    token_list_clear(&r->prompt);
    ledger_release(r->e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, r->charged_requests - charged);
    r->charged_requests = charged;
    r->prefill_us += clock_us() - began_us;
    return rc;
}

int embed_inputs(struct run *r, struct err *err)
{
    struct event started = {.kind = EVENT_STARTED};
    float *v = NULL;
    int rc = 0;

    if (!r->info.pooling)
        return err_set(err, ERR_UNPROCESSABLE,
                       "'%s' writes text and gives no embeddings: its file has no pooling type",
                       r->task->model);
    rc = run_charge_answer(r, r->req->n_inputs * r->info.n_embd * ELEMENT_BYTES, err);
    if (rc < 0)
        return rc;
    v = XNEW_ARRAY(float, r->info.n_embd);
    events_post(r->e, r->task, &started);
    run_step(r, STEP_PREFILLING);
    for (size_t i = 0; i < r->req->n_inputs && rc >= 0; i++) {
        rc = embed_one(r, i, v, err);
        worker_alive(r->e);
        worker_read_mail(r->e);
        if (rc >= 0)
            rc = run_cancelled(r, err);
    }
    free(v);
    return rc;
}
