/* From what was asked to ids, options and room in the ledger; see run.h. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "common/alloc.h"
#include "daemon/chat/chat.h"
#include "daemon/engine/parse.h"
#include "daemon/engine/run.h"

/* -- sampling options ------------------------------------------------------------------------ */

static bool given(const struct run *r, enum sampling_field f)
{
    return r->req->given >> f & 1;
}

/* The request's word, else the file's, else the default that is there already. */
static void complete_sampling(struct run *r)
{
    const struct model_sampling *file = &r->info.sampling;
    struct sampling_options *o = &r->sampling;

    if (file->has_temperature && !given(r, SAMPLING_FIELD_temperature))
        o->temperature = file->temperature;
    if (file->has_top_k && !given(r, SAMPLING_FIELD_top_k))
        o->top_k = file->top_k;
    if (file->has_top_p && !given(r, SAMPLING_FIELD_top_p))
        o->top_p = file->top_p;
    if (file->has_min_p && !given(r, SAMPLING_FIELD_min_p))
        o->min_p = file->min_p;
    if (file->has_repeat_penalty && !given(r, SAMPLING_FIELD_repeat_penalty))
        o->repeat_penalty = file->repeat_penalty;
    if (!given(r, SAMPLING_FIELD_seed)) {
        uint32_t seed = 0;

        /* 32 bits, so that it survives a client whose numbers are doubles and can be asked for again. */
        if (getrandom(&seed, sizeof seed, GRND_NONBLOCK) != sizeof seed)
            seed = (uint32_t)r->task->submitted_us;
        o->seed = seed;
    }
}

/* ignore_eos: no token that ends a generation can be chosen. */
static int ban_ends(struct run *r, struct err *err)
{
    const struct request *req = r->req;
    size_t n = req->sampling.n_bias, ends = 0;
    int rc;

    if (!req->ignore_eos || !r->tokenizer)
        return 0;
    for (size_t id = 0; id < r->info.n_vocab; id++)
        ends += tokenizer_is_eog(r->tokenizer, (int32_t)id);
    rc = run_charge(r, ACCOUNT_REQUESTS, (n + ends) * sizeof *r->bias, err);
    if (rc < 0)
        return rc;
    r->bias = XNEW_ARRAY(struct sampling_bias, n + ends + 1);
    if (n)
        memcpy(r->bias, req->sampling.bias, n * sizeof *r->bias);
    for (size_t id = 0; id < r->info.n_vocab; id++)
        if (tokenizer_is_eog(r->tokenizer, (int32_t)id))
            r->bias[n++] = (struct sampling_bias){.id = (int32_t)id, .bias = -INFINITY};
    r->sampling.bias = r->bias;
    r->sampling.n_bias = n;
    return 0;
}

static int check_bias(const struct run *r, struct err *err)
{
    for (size_t i = 0; i < r->sampling.n_bias; i++)
        if (r->sampling.bias[i].id < 0 || (size_t)r->sampling.bias[i].id >= r->info.n_vocab)
            return err_set_param(err, ERR_INVALID, "logit_bias",
                                 "'logit_bias' names token %d; '%s' has %zu tokens",
                                 (int)r->sampling.bias[i].id, r->task->model, r->info.n_vocab);
    return 0;
}

static int prepare_sampling(struct run *r, struct err *err)
{
    int rc;

    complete_sampling(r);
    rc = sampling_check(&r->sampling, err);
    if (rc >= 0)
        rc = check_bias(r, err);
    if (rc >= 0)
        rc = ban_ends(r, err);
    if (rc >= 0)
        rc = run_charge(r, ACCOUNT_SCRATCH,
                        sampler_bytes(&r->sampling, r->info.n_vocab, model_n_ctx(r->model)), err);
    return rc;
}

/* -- ids ------------------------------------------------------------------------------------------ */

static int need_tokenizer(const struct run *r, struct err *err)
{
    if (r->tokenizer)
        return 0;
    return err_set(err, ERR_UNSUPPORTED,
                   "'%s' has no vocabulary in its file; give the prompt as token ids",
                   r->task->model);
}

static int charge(void *run, size_t bytes, struct err *err)
{
    return run_charge(run, ACCOUNT_REQUESTS, bytes, err);
}

static void discharge(void *run, size_t bytes)
{
    struct run *r = run;

    ledger_release(r->e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, bytes);
    r->charged_requests -= bytes;
}

/* A long text takes seconds: a cancel, and a budget, are heard meanwhile. */
static int go_on(void *run, struct err *err)
{
    struct run *r = run;

    worker_alive(r->e);
    worker_read_mail(r->e);
    return run_cancelled(r, err);
}

/* The ids stay charged with the run. */
static int encode(struct run *r, struct view text, const struct token_span *spans, size_t n_spans,
                  struct err *err)
{
    const struct token_room room = {charge, discharge, go_on, r};

    return tokenizer_encode_within(r->tokenizer, text, spans, n_spans, true, &room, &r->prompt,
                                   err);
}

int prepare_ids(struct run *r, const char *name, const int32_t *ids, size_t n, struct err *err)
{
    int rc;

    for (size_t i = 0; i < n; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= r->info.n_vocab)
            return err_set_param(err, ERR_INVALID, name,
                                 "token %zu of '%s' is %d; '%s' has %zu tokens", i, name,
                                 (int)ids[i], r->task->model, r->info.n_vocab);
    rc = run_charge(r, ACCOUNT_REQUESTS, n * sizeof *ids, err);
    if (rc < 0)
        return rc;
    token_list_clear(&r->prompt);
    r->prompt.ids = xmemdup(ids, n * sizeof *ids);
    r->prompt.n = r->prompt.cap = n;
    return 0;
}

/* The text is the caller's own: control tokens in it are meant. */
int prepare_text(struct run *r, struct view text, struct err *err)
{
    const struct token_span all = {0, text.len, true};
    int rc = need_tokenizer(r, err);

    return rc < 0 ? rc : encode(r, text, &all, 1, err);
}

/* n tokens, of which the context holds one less than it has: the first of the answer comes behind them. */
static int check_fits(const struct run *r, const char *least, size_t n, struct err *err)
{
    size_t n_ctx = model_n_ctx(r->model);

    if (n < n_ctx)
        return 0;
    return err_set_param(err, ERR_TOO_LARGE, "prompt",
                         "the prompt has %s%zu tokens, and the context of '%s' holds %zu with at "
                         "least one for the answer; shorten it, or load the model with a "
                         "larger context",
                         least, n, r->task->model, n_ctx);
}

/* What is too long however it is cut is not encoded. */
static int check_text(const struct run *r, struct view text, struct err *err)
{
    return check_fits(r, "at least ", tokenizer_least_ids(r->tokenizer, text.len), err);
}

/* The prompt in front of the answer; its length has been checked. */
static int keep_prompt_text(struct run *r, struct view text, struct err *err)
{
    const struct request *req = r->req;
    const struct token_list *ids = &r->prompt;
    size_t bytes = text.len + 1;
    int rc;

    if (req->prompt_ids)
        bytes = r->tokenizer ? tokenizer_decode_bytes(r->tokenizer, ids->ids, ids->n, false) : 0;
    rc = charge(r, bytes, err);
    if (rc < 0)
        return rc;
    if (!req->prompt_ids)
        r->text = (struct str){view_dup(text), text.len, bytes};
    else if (r->tokenizer)
        tokenizer_decode(r->tokenizer, ids->ids, ids->n, true, false, &r->text);
    return 0;
}

static int take_prompt(struct run *r, struct err *err)
{
    const struct request *req = r->req;
    struct view text = {req->prompt ? req->prompt : "", req->prompt_len};
    int rc;

    if (req->prompt_ids) {
        rc = prepare_ids(r, "prompt", req->prompt_ids, req->n_prompt_ids, err);
    } else {
        rc = need_tokenizer(r, err);
        if (rc >= 0)
            rc = check_text(r, text, err);
        if (rc >= 0)
            rc = prepare_text(r, text, err);
    }
    if (rc >= 0)
        rc = check_fits(r, "", r->prompt.n, err);
    if (rc >= 0 && req->echo)
        rc = keep_prompt_text(r, text, err);
    return rc;
}

/* Bytes of the values and the text of a template: where it begins, and what template.h allows at most. */
#define RENDER_LEAST ((size_t)128 << 10)
#define RENDER_MOST  ((size_t)160 << 20)

/* -- a conversation ------------------------------------------------------------------------------ */

/* While it is parsed it is the request's; it stays with its model, charged as text. */
static int need_template(struct run *r, struct err *err)
{
    const struct parse_room room = {charge, discharge, r};
    struct slot *s = r->task->work.slot;
    struct chat_template *t;
    size_t bytes;
    int rc;

    if (s->chat)
        return 0;
    rc = parse_template_within(r->info.chat_template, &room, &t, err);
    if (rc < 0)
        return rc;
    bytes = chat_template_memory_bytes(t);
    rc = ledger_reserve(r->e->opt.ledger, POOL_RAM, ACCOUNT_TEXT, bytes, "a chat template", err);
    if (rc < 0) {
        chat_template_destroy(t);
        return rc;
    }
    s->chat = t;
    s->chat_bytes = bytes;
    return 0;
}

static char *token_text(const struct tokenizer *t, int32_t id)
{
    return id < 0 ? NULL : view_dup(tokenizer_text(t, id));
}

/* BOS and EOS of a file may be of any length: the text of each, and the JSON of it. */
static size_t token_texts_bytes(const struct tokenizer *t)
{
    return 2 * (tokenizer_text(t, tokenizer_bos(t)).len + tokenizer_text(t, tokenizer_eos(t)).len);
}

static int render_within(struct run *r, size_t bytes, struct template_output *ret, struct err *err)
{
    /* A text is built in the values of the template and then written. */
    const struct template_limits limits = {.memory_bytes = bytes / 5 * 4,
                                           .output_bytes = bytes / 5};
    const struct request *req = r->req;
    char *bos = token_text(r->tokenizer, tokenizer_bos(r->tokenizer));
    char *eos = token_text(r->tokenizer, tokenizer_eos(r->tokenizer));
    struct chat_options o = {.add_generation_prompt = true,
                             .kwargs = req->template_kwargs,
                             .bos_token = bos,
                             .eos_token = eos,
                             .limits = &limits};
    time_t now = time(NULL);
    int rc;

    localtime_r(&now, &o.now);
    rc = chat_render(r->task->work.slot->chat, req->messages, req->tools, &o, ret, err);
    free(bos);
    free(eos);
    return rc;
}

/*
 * What rendering takes is not known before: more is asked of the ledger until it is enough, or as
 * much as a template may take.  *ret_held is to be given back when the text has been charged.
 */
static int render(struct run *r, struct template_output *ret, size_t *ret_held, struct err *err)
{
    struct ledger *l = r->e->opt.ledger;
    size_t bytes = MIN(RENDER_LEAST + 4 * r->req->bytes, RENDER_MOST);
    int rc;

    for (;;) {
        /* The messages are copied into the shape that the template wants. */
        size_t held = bytes + r->req->bytes + token_texts_bytes(r->tokenizer);

        rc = ledger_reserve(l, POOL_RAM, ACCOUNT_REQUESTS, held, "rendering a chat template", err);
        if (rc < 0)
            return rc;
        rc = render_within(r, bytes, ret, err);
        if (rc >= 0) {
            *ret_held = held;
            return rc;
        }
        ledger_release(l, POOL_RAM, ACCOUNT_REQUESTS, held);
        if (rc != -ERR_TOO_LARGE || bytes == RENDER_MOST)
            return rc;
        template_output_clear(ret);
        bytes = MIN(bytes * 8, RENDER_MOST);
    }
}

/* A BOS that the template wrote, where the vocabulary adds one by itself: the bytes to leave out. */
static size_t doubled_bos(const struct run *r, const struct template_output *out)
{
    struct view text = view_of_str(&out->text), bos;
    int32_t id = tokenizer_bos(r->tokenizer);

    if (id < 0 || !tokenizer_add_bos(r->tokenizer))
        return 0;
    bos = tokenizer_text(r->tokenizer, id);
    if (!view_starts(text, bos) || (out->n_spans && out->spans[0].from < bos.len))
        return 0;
    return bos.len;
}

/* Spans of message origin → spans that cover the text from `skip` on, trusted and not in turn. */
static struct token_span *cover(const struct template_output *out, size_t skip, size_t *ret_n)
{
    struct token_span *spans = XNEW_ARRAY(struct token_span, 2 * out->n_spans + 1);
    size_t n = 0, at = skip;

    for (size_t i = 0; i < out->n_spans; i++) {
        const struct template_span *m = &out->spans[i];

        if (m->from > at)
            spans[n++] = (struct token_span){at - skip, m->from - skip, true};
        if (m->to > m->from)
            spans[n++] = (struct token_span){m->from - skip, m->to - skip, false};
        at = m->to;
    }
    if (at < out->text.len)
        spans[n++] = (struct token_span){at - skip, out->text.len - skip, true};
    *ret_n = n;
    return spans;
}

static int take_conversation(struct run *r, struct err *err)
{
    struct template_output out = {0};
    struct token_span *spans = NULL;
    size_t skip, n_spans, held = 0, listed = 0;
    struct view text;
    int rc = need_tokenizer(r, err);

    if (rc >= 0)
        rc = need_template(r, err);
    if (rc >= 0)
        rc = render(r, &out, &held, err);
    if (rc >= 0)
        rc = charge(r, out.text.cap, err);
    /* The template's spans may have grown to twice as many, and those of the encoding are as many. */
    if (rc >= 0)
        rc = charge(r, (2 * out.n_spans + 1) * (sizeof *out.spans + sizeof *spans), err);
    if (rc >= 0)
        listed = (2 * out.n_spans + 1) * (sizeof *out.spans + sizeof *spans);
    ledger_release(r->e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, held);
    if (rc < 0)
        goto done;
    skip = doubled_bos(r, &out);
    text = view_sub(view_of_str(&out.text), skip, out.text.len - skip);
    rc = check_text(r, text, err);
    if (rc < 0)
        goto done;
    spans = cover(&out, skip, &n_spans);
    rc = encode(r, text, spans, n_spans, err);
    if (rc < 0)
        goto done;
    /* The splitter looks at it: the reasoning may be open already. */
    r->text = out.text;
    out.text = (struct str){0};
done:
    free(spans);
    template_output_clear(&out);
    discharge(r, listed);
    return rc;
}

/* -- all of it ------------------------------------------------------------------------------------- */

static int check_length(struct run *r, struct err *err)
{
    size_t n = r->prompt.n;
    int rc = check_fits(r, "", n, err);

    if (rc < 0)
        return rc;
    if (n == 0)
        return err_set_param(err, ERR_INVALID, "prompt",
                             "the prompt is empty; give at least one token");
    r->max_tokens = r->req->max_tokens < 0 ? SIZE_MAX : (size_t)r->req->max_tokens;
    r->usage.prompt_tokens = n;
    atomic_store_explicit(&r->task->stat_prompt, n, memory_order_relaxed);
    return 0;
}

static size_t stops_bytes(const struct request *req)
{
    size_t sum = 0;

    for (unsigned i = 0; i < req->n_stops; i++)
        sum += req->stop[i].len;
    return stop_bytes(sum, req->n_stops);
}

int prepare_request(struct run *r, struct err *err)
{
    int rc;

    if (r->info.pooling)
        return err_set(err, ERR_UNPROCESSABLE,
                       "'%s' gives embeddings and writes no text; ask it at /v1/embeddings",
                       r->task->model);
    rc = prepare_sampling(r, err);
    if (rc >= 0)
        rc = run_charge(r, ACCOUNT_REQUESTS, stops_bytes(r->req), err);
    if (rc < 0)
        return rc;
    if (r->req->kind == REQUEST_CHAT)
        rc = take_conversation(r, err);
    else
        rc = take_prompt(r, err);
    if (rc >= 0)
        rc = check_length(r, err);
    if (rc >= 0)
        output_init(&r->output, r->e, r->task, r->tokenizer, view_of_str(&r->text),
                    r->sampling.seed);
    return rc;
}

void prepare_clear(struct run *r)
{
    output_clear(&r->output);
    token_list_clear(&r->prompt);
    str_clear(&r->text);
    free(r->bias);
    r->bias = NULL;
    r->sampling.bias = r->req->sampling.bias;
    r->sampling.n_bias = r->req->sampling.n_bias;
    ledger_release(r->e->opt.ledger, POOL_RAM, ACCOUNT_REQUESTS, r->charged_requests);
    ledger_release(r->e->opt.ledger, POOL_RAM, ACCOUNT_SCRATCH, r->charged_scratch);
    r->charged_requests = r->charged_scratch = 0;
}
