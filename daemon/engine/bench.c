/* Measures prefill and decode of a model at a depth; see engine.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/engine/engine_priv.h"

struct bench {
    struct engine *e;
    const struct job *job;
    struct model *model;
    size_t n_vocab;
    json_t *pp, *tg; /* rates of each repeat */
    double pp_sum, tg_sum;
};

/* Any ids do; these are spread over the vocabulary and never the same twice in a row. */
static int32_t id_at(const struct bench *b, size_t i)
{
    return (int32_t)((i * 7919 + 13) % b->n_vocab);
}

/* Between two batches, as a request does. */
static int between(const struct bench *b, struct err *err)
{
    const struct work *w = &b->job->work;

    worker_alive(b->e);
    worker_read_mail(b->e);
    if (!work_cancelled(w))
        return 0;
    return err_set(err, ERR_CANCELLED, "%s", w->why ? w->why : "the bench was cancelled");
}

/* n tokens behind what is there, in batches of at most `chunk`; with logits where they would be wanted. */
static int eval(struct bench *b, size_t n, size_t chunk, bool logits, struct err *err)
{
    int32_t *ids = XNEW_ARRAY(int32_t, chunk);
    size_t at = sequence_length(model_sequence(b->model));
    const float *unused;
    int r = 0;

    while (n > 0 && r >= 0) {
        size_t rows = MIN(chunk, n);
        int32_t last = (int32_t)rows - 1;

        for (size_t i = 0; i < rows; i++)
            ids[i] = id_at(b, at + i);
        r = model_eval(b->model, ids, rows, &last, logits, &b->job->work.cancel, &unused, err);
        at += rows;
        n -= rows;
        if (r >= 0)
            r = between(b, err);
    }
    free(ids);
    return r < 0 ? r : 0;
}

/* Fills up to the depth, then measures n tokens in batches of chunk. */
static int measure(struct bench *b, size_t n, size_t chunk, double *ret_per_s, struct err *err)
{
    size_t batch = model_n_batch(b->model);
    struct sequence *seq = model_sequence(b->model);
    int64_t began_us;
    int r = 0;

    sequence_truncate(seq, MIN(sequence_length(seq), b->job->depth));
    if (sequence_length(seq) < b->job->depth)
        r = eval(b, b->job->depth - sequence_length(seq), batch, false, err);
    if (r < 0)
        return r;
    began_us = clock_us();
    r = eval(b, n, chunk, true, err);
    *ret_per_s = (double)n * 1e6 / (double)MAX(clock_us() - began_us, (int64_t)1);
    return r;
}

static int repeat(struct bench *b, struct err *err)
{
    double per_s;
    int r = 0;

    if (b->job->n_prompt) {
        r = measure(b, b->job->n_prompt, model_n_batch(b->model), &per_s, err);
        if (r < 0)
            return r;
        json_array_append_new(b->pp, json_real(per_s));
        b->pp_sum += per_s;
    }
    if (b->job->n_gen) {
        r = measure(b, b->job->n_gen, 1, &per_s, err);
        if (r < 0)
            return r;
        json_array_append_new(b->tg, json_real(per_s));
        b->tg_sum += per_s;
    }
    return 0;
}

static int run(struct bench *b, struct err *err)
{
    size_t longest = b->job->depth + MAX(b->job->n_prompt, b->job->n_gen);
    size_t n_ctx = model_n_ctx(b->model);
    int r = 0;

    if (longest > n_ctx)
        return err_set(err, ERR_TOO_LARGE,
                       "the bench needs %zu tokens, and the context holds %zu; measure less, or "
                       "load the model with a larger context",
                       longest, n_ctx);
    sequence_truncate(model_sequence(b->model), 0);
    for (unsigned i = 0; i < b->job->repeats && r >= 0; i++) {
        r = repeat(b, err);
        events_job_progress(b->e, (struct job *)(uintptr_t)b->job, "measuring", i + 1,
                            b->job->repeats);
    }
    /* What was computed here is nobody's prefix. */
    sequence_truncate(model_sequence(b->model), 0);
    return r;
}

static json_t *result_of(const struct bench *b, const struct model_info *info)
{
    const struct job *j = b->job;
    struct device dev = {0};

    b->e->opt.backend_ops->describe(b->e->opt.backend, &dev);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:i, s:O, s:O, s:f, s:f}", "model",
                     j->name, "arch", info->arch, "type", info->type, "device", dev.detail,
                     "n_params", (json_int_t)info->n_params, "n_prompt", (json_int_t)j->n_prompt,
                     "n_gen", (json_int_t)j->n_gen, "depth", (json_int_t)j->depth, "repeats",
                     (int)j->repeats, "pp", b->pp, "tg", b->tg, "pp_per_s", b->pp_sum / j->repeats,
                     "tg_per_s", b->tg_sum / j->repeats);
}

void bench_run(struct engine *e, struct job *take_job)
{
    struct bench b = {.e = e, .job = take_job, .pp = json_array(), .tg = json_array()};
    struct model_info info;
    json_t *result = NULL;
    struct err err;
    int r = loader_take(e, &take_job->work, &err);

    if (r >= 0) {
        b.model = take_job->work.slot->model;
        model_info(b.model, &info);
        b.n_vocab = info.n_vocab;
        r = run(&b, &err);
        if (r >= 0)
            result = result_of(&b, &info);
        loader_give_back(e, &take_job->work);
    }
    json_decref(b.pp);
    json_decref(b.tg);
    events_job_done(e, take_job, result, r < 0 ? &err : NULL);
}
