/* Token by token from the logits of the prompt to the end of a choice; see run.h. */
#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/engine/run.h"

static void describe(struct run *r, int32_t id, struct token_logprob *ret)
{
    struct candidate top[SAMPLING_MAX_TOP_LOGPROBS];

    *ret = (struct token_logprob){.id = id, .n_top = MIN(r->req->n_top_logprobs, 20)};
    ret->logprob = sampling_logprobs(r->logits, r->info.n_vocab, id, top, ret->n_top);
    for (unsigned i = 0; i < ret->n_top; i++) {
        if (top[i].id < 0) { /* a vocabulary smaller than what was asked for */
            ret->n_top = i;
            break;
        }
        ret->top[i].id = top[i].id;
        ret->top[i].logprob = top[i].p;
    }
}

/* Chooses and hands on one token.  True: the choice has ended, *finish says why. */
static bool next_token(struct run *r, int32_t *ret_id, enum finish *finish)
{
    bool ends;
    struct token_logprob lp;
    int32_t id = sampler_choose(r->sampler, r->logits);

    if (r->usage.completion_tokens == 0 && r->timings.ttft_ms == 0)
        r->timings.ttft_ms = (double)(clock_us() - r->task->submitted_us) / 1000;
    *ret_id = id;
    *finish = FINISH_STOP;
    if (r->tokenizer && !r->req->ignore_eos && tokenizer_is_eog(r->tokenizer, id))
        return true;
    if (r->req->logprobs)
        describe(r, id, &lp);
    sampler_accept(r->sampler, id);
    r->generated++;
    r->usage.completion_tokens++;
    atomic_store_explicit(&r->task->stat_done, r->usage.completion_tokens, memory_order_relaxed);
    ends = output_token(&r->output, id, r->req->logprobs ? &lp : NULL);
    if (!ends && r->generated >= r->max_tokens) {
        *finish = FINISH_LENGTH;
        ends = true;
    }
    return ends;
}

static int make_sampler(struct run *r, struct err *err)
{
    struct sampling_options o = r->sampling;

    /* Each choice has its own numbers, and the same ones however many there are. */
    o.seed += r->choice;
    r->sampler = sampler_create(&o, r->info.n_vocab, model_n_ctx(r->model));
    if (!r->sampler)
        return err_set(err, ERR_NOMEM, "the system has no memory for the sampler of request %llu",
                       (unsigned long long)r->task->work.id);
    output_set_breakers(&r->output, r->sampler, &r->sampling);
    for (size_t i = 0; i < r->prompt.n; i++)
        sampler_accept(r->sampler, r->prompt.ids[i]);
    return 0;
}

static int generate(struct run *r, enum finish *finish, struct err *err)
{
    const int32_t row = 0;
    int32_t id;
    int rc;

    while (!next_token(r, &id, finish)) {
        rc = run_charge_answer(r, r->output.kept_bytes, err);
        if (rc < 0)
            return rc;
        if (sequence_length(model_sequence(r->model)) >= model_n_ctx(r->model)) {
            *finish = FINISH_LENGTH;
            return 0;
        }
        rc = model_eval(r->model, &id, 1, &row, 1, &r->task->work.cancel, &r->logits, err);
        if (rc < 0)
            return rc;
        r->decoded_tokens++;
        worker_alive(r->e);
        worker_read_mail(r->e);
        rc = run_cancelled(r, err);
        if (rc < 0)
            return rc;
    }
    return 0;
}

int decode_choice(struct run *r, struct err *err)
{
    int64_t began_us = clock_us();
    enum finish finish = FINISH_LENGTH;
    int rc = 0;

    r->generated = 0;
    output_begin(&r->output, r->choice);
    if (r->req->echo)
        output_echo(&r->output, view_of_str(&r->text));
    rc = run_charge_answer(r, r->output.kept_bytes, err);
    if (rc >= 0 && r->max_tokens > 0) {
        rc = make_sampler(r, err);
        if (rc >= 0)
            rc = generate(r, &finish, err);
    }
    sampler_destroy(r->sampler);
    r->sampler = NULL;
    r->decode_us += clock_us() - began_us;
    if (rc >= 0) /* the last token is kept as the others are */
        rc = run_charge_answer(r, r->output.kept_bytes, err);
    if (rc >= 0)
        output_end(&r->output, finish);
    r->usage.reasoning_tokens += r->output.reasoning_tokens;
    return rc;
}
