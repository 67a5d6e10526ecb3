/* Measures prefill and decode of a model at some depths; see engine.h. */
#include <stdlib.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "common/median.h"
#include "daemon/engine/engine_priv.h"

struct bench {
    struct engine *e;
    const struct job *job;
    const struct bench_spec *spec;
    struct model *model;
    struct token_list text; /* what is read, again and again */
    json_t *tests;
};

/* The text where there is a tokenizer; else ids spread over the vocabulary, never the same twice in a row. */
static int make_text(struct bench *b, struct err *err)
{
    const struct tokenizer *t = model_tokenizer(b->model);
    struct model_info info;

    if (t)
        return tokenizer_encode(t, view_of(bench_text), false, false, &b->text, err);
    model_info(b->model, &info);
    b->text.n = b->text.cap = MIN(info.n_vocab, (size_t)4096);
    b->text.ids = XNEW_ARRAY(int32_t, b->text.n);
    for (size_t i = 0; i < b->text.n; i++)
        b->text.ids[i] = (int32_t)((i * 7919 + 13) % info.n_vocab);
    return 0;
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
            ids[i] = b->text.ids[(at + i) % b->text.n];
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
static int measure(struct bench *b, size_t depth, size_t n, size_t chunk, json_t *rates,
                   struct err *err)
{
    size_t batch = model_n_batch(b->model);
    struct sequence *seq = model_sequence(b->model);
    int64_t began_us;
    int r = 0;

    sequence_truncate(seq, MIN(sequence_length(seq), depth));
    if (sequence_length(seq) < depth)
        r = eval(b, depth - sequence_length(seq), batch, false, err);
    if (r < 0)
        return r;
    sequence_checkpoint(seq);
    began_us = clock_us();
    r = eval(b, n, chunk, true, err);
    json_array_append_new(
        rates, json_real((double)n * 1e6 / (double)MAX(clock_us() - began_us, (int64_t)1)));
    return r;
}

static void add_test(struct bench *b, const char *test, size_t n, size_t depth, json_t *take_rates)
{
    size_t runs = json_array_size(take_rates);
    double *sorted = XNEW_ARRAY(double, runs + 1), middle;

    for (size_t i = 0; i < runs; i++)
        sorted[i] = json_real_value(json_array_get(take_rates, i));
    qsort(sorted, runs, sizeof *sorted, median_by_value);
    middle = (sorted[(runs - 1) / 2] + sorted[runs / 2]) / 2;
    json_array_append_new(b->tests,
                          json_pack("{s:s, s:I, s:I, s:f, s:f, s:f, s:f, s:o}", "test", test, "n",
                                    (json_int_t)n, "depth", (json_int_t)depth, "median", middle,
                                    "least", sorted[0], "most", sorted[runs - 1], "spread",
                                    (sorted[runs - 1] - sorted[0]) / middle, "rates", take_rates));
    free(sorted);
}

/* Prefill and decode take turns, so that a machine that changes its speed changes it for both. */
static int run_depth(struct bench *b, unsigned which, struct err *err)
{
    const struct bench_spec *spec = b->spec;
    size_t depth = spec->depths[which];
    json_t *pp = json_array(), *tg = json_array();
    int r = 0;

    for (unsigned i = 0; i < spec->repeats && r >= 0; i++) {
        if (spec->n_prompt)
            r = measure(b, depth, spec->n_prompt, model_n_batch(b->model), pp, err);
        if (spec->n_gen && r >= 0)
            r = measure(b, depth, spec->n_gen, 1, tg, err);
        events_job_progress(b->e, (struct job *)(uintptr_t)b->job, "measuring",
                            (size_t)which * spec->repeats + i + 1,
                            (size_t)spec->n_depths * spec->repeats);
    }
    if (r >= 0 && spec->n_prompt)
        add_test(b, "pp", spec->n_prompt, depth, json_incref(pp));
    if (r >= 0 && spec->n_gen)
        add_test(b, "tg", spec->n_gen, depth, json_incref(tg));
    json_decref(pp);
    json_decref(tg);
    return r;
}

static int run(struct bench *b, struct err *err)
{
    const struct bench_spec *spec = b->spec;
    size_t n_ctx = model_n_ctx(b->model), longest = 0;
    int r;

    for (unsigned i = 0; i < spec->n_depths; i++)
        longest = MAX(longest, spec->depths[i]);
    longest += MAX(spec->n_prompt, spec->n_gen);
    if (longest > n_ctx)
        return err_set(err, ERR_TOO_LARGE,
                       "the bench needs %zu tokens, and the context holds %zu; measure less, or "
                       "load the model with a larger context",
                       longest, n_ctx);
    r = make_text(b, err);
    sequence_truncate(model_sequence(b->model), 0);
    for (unsigned i = 0; i < spec->n_depths && r >= 0; i++)
        r = run_depth(b, i, err);
    /* What was computed here is nobody's prefix. */
    sequence_truncate(model_sequence(b->model), 0);
    return r;
}

static json_t *result_of(const struct bench *b)
{
    struct model_info info;
    struct device dev = {0};

    model_info(b->model, &info);
    b->e->opt.backend_ops->describe(b->e->opt.backend, &dev);
    return json_pack("{s:s, s:s, s:s, s:s, s:I, s:i, s:O}", "model", b->job->name, "arch",
                     info.arch, "type", info.type, "device", dev.detail, "n_params",
                     (json_int_t)info.n_params, "repeats", (int)b->spec->repeats, "tests",
                     b->tests);
}

void bench_run(struct engine *e, struct job *take_job)
{
    struct bench b = {.e = e, .job = take_job, .spec = &take_job->bench, .tests = json_array()};
    json_t *result = NULL;
    struct err err;
    int r = loader_take(e, &take_job->work, &err);

    if (r >= 0) {
        b.model = take_job->work.slot->model;
        r = run(&b, &err);
        if (r >= 0)
            result = result_of(&b);
        loader_give_back(e, &take_job->work);
    }
    token_list_clear(&b.text);
    json_decref(b.tests);
    events_job_done(e, take_job, result, r < 0 ? &err : NULL);
}
