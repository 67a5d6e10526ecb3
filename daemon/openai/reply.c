/* Whole answers, and what streams share with them; see openai.h. */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/alloc.h"
#include "common/clock.h"
#include "daemon/openai/reply_priv.h"

struct reply *reply_create(enum request_kind kind, const struct reply_options *opt,
                           unsigned n_choices)
{
    struct reply *r = XNEW(struct reply);
    unsigned char noise[12] = {0};
    size_t len;

    if (getrandom(noise, sizeof noise, GRND_NONBLOCK) < 0)
        memcpy(noise, &(int64_t){clock_us()}, sizeof(int64_t));
    r->kind = kind;
    r->opt = *opt;
    r->created = clock_wall_s();
    r->n_choices = n_choices;
    r->vectors = kind == REQUEST_EMBEDDING ? json_array() : NULL;
    r->choices = XNEW_ARRAY(struct choice, n_choices);
    len = (size_t)snprintf(r->id, sizeof r->id, "%s-", kind == REQUEST_CHAT ? "chatcmpl" : "cmpl");
    for (size_t i = 0; i < sizeof noise; i++)
        len += (size_t)snprintf(r->id + len, sizeof r->id - len, "%02x", noise[i]);
    return r;
}

void reply_destroy(struct reply *r)
{
    if (!r)
        return;
    for (unsigned i = 0; i < r->n_choices; i++) {
        struct choice *c = &r->choices[i];

        str_clear(&c->content);
        str_clear(&c->reasoning);
        str_clear(&c->arguments);
        json_decref(c->tool_calls);
        json_decref(c->logprobs);
    }
    json_decref(r->vectors);
    free(r->choices);
    free(r);
}

bool reply_streams(const struct reply *r)
{
    return r->opt.stream;
}

json_t *reply_head(const struct reply *r, const char *object)
{
    return json_pack("{s:s, s:s, s:I, s:s, s:s}", "id", r->id, "object", object, "created",
                     (json_int_t)r->created, "model", r->model, "system_fingerprint",
                     "rnbd-" RNBD_VERSION);
}

json_t *reply_usage(const struct request_usage *u)
{
    return json_pack(
        "{s:I, s:I, s:I, s:{s:I}, s:{s:I}}", "prompt_tokens", (json_int_t)u->prompt_tokens,
        "completion_tokens", (json_int_t)u->completion_tokens, "total_tokens",
        (json_int_t)u->prompt_tokens + (json_int_t)u->completion_tokens, "prompt_tokens_details",
        "cached_tokens", (json_int_t)u->cached_tokens, "completion_tokens_details",
        "reasoning_tokens", (json_int_t)u->reasoning_tokens);
}

/* Times to the microsecond and rates to a hundredth: more digits would only be noise. */
static json_t *rounded(double x, double steps)
{
    return json_real(isfinite(x) ? round(x * steps) / steps : 0);
}

json_t *reply_timings(const struct request_timings *t)
{
    json_t *o = json_object();

    json_object_set_new(o, "queue_ms", rounded(t->queue_ms, 1000));
    json_object_set_new(o, "load_ms", rounded(t->load_ms, 1000));
    json_object_set_new(o, "prefill_ms", rounded(t->prefill_ms, 1000));
    json_object_set_new(o, "decode_ms", rounded(t->decode_ms, 1000));
    json_object_set_new(o, "ttft_ms", rounded(t->ttft_ms, 1000));
    json_object_set_new(o, "pp_per_second", rounded(t->pp_per_s, 100));
    json_object_set_new(o, "tg_per_second", rounded(t->tg_per_s, 100));
    json_object_set_new(o, "bytes_read", json_integer((json_int_t)t->bytes_read));
    json_object_set_new(o, "bytes_wanted", json_integer((json_int_t)t->bytes_wanted));
    json_object_set_new(o, "wait_ms", rounded(t->wait_ms, 1000));
    json_object_set_new(o, "hit_rate",
                        t->uses ? rounded((double)t->hits / (double)t->uses, 10000) : json_null());
    return o;
}

json_t *reply_float(float f)
{
    char buf[32];

    for (int digits = 6; digits <= 9; digits++) {
        snprintf(buf, sizeof buf, "%.*g", digits, (double)f);
        if (strtof(buf, NULL) == f)
            break;
    }
    return json_real(strtod(buf, NULL));
}

json_t *reply_sampling(const struct sampling_options *s)
{
    json_t *o = json_object();

    json_object_set_new(o, "temperature", reply_float(s->temperature));
    json_object_set_new(o, "top_k", json_integer(s->top_k));
    json_object_set_new(o, "top_p", reply_float(s->top_p));
    json_object_set_new(o, "min_p", reply_float(s->min_p));
    json_object_set_new(o, "repeat_penalty", reply_float(s->repeat_penalty));
    json_object_set_new(o, "seed", json_integer((json_int_t)s->seed));
    return o;
}

/* -- log probabilities -------------------------------------------------------------------------- */

static json_t *bytes_of(struct view v)
{
    json_t *list = json_array();

    for (size_t i = 0; i < v.len; i++)
        json_array_append_new(list, json_integer((unsigned char)v.p[i]));
    return list;
}

/* JSON has no minus infinity: OpenAI's own floor. */
static json_t *logprob_of(float x)
{
    return json_real(isfinite(x) ? (double)x : -9999.0);
}

static json_t *chat_token(struct view text, float logprob)
{
    json_t *o = json_object();

    json_object_set_new(o, "token", json_text(text.p, text.len));
    json_object_set_new(o, "logprob", logprob_of(logprob));
    json_object_set_new(o, "bytes", bytes_of(text));
    return o;
}

static json_t *chat_logprobs(const struct token_logprob *list, size_t n)
{
    json_t *content = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *token = chat_token(list[i].text, list[i].logprob);
        json_t *top = json_array();

        for (unsigned j = 0; j < list[i].n_top; j++)
            json_array_append_new(top, chat_token(list[i].top[j].text, list[i].top[j].logprob));
        json_object_set_new(token, "top_logprobs", top);
        json_array_append_new(content, token);
    }
    return json_pack("{s:o, s:n}", "content", content, "refusal");
}

static json_t *completion_logprobs(const struct token_logprob *list, size_t n)
{
    json_t *tokens = json_array(), *values = json_array(), *tops = json_array(),
           *offsets = json_array();

    for (size_t i = 0; i < n; i++) {
        json_t *top = json_object();

        json_array_append_new(tokens, json_text(list[i].text.p, list[i].text.len));
        /* The first token of an echoed prompt has nothing before it: NaN stands for "none". */
        json_array_append_new(values,
                              isnan(list[i].logprob) ? json_null() : logprob_of(list[i].logprob));
        for (unsigned j = 0; j < list[i].n_top; j++) {
            json_t *key = json_text(list[i].top[j].text.p, list[i].top[j].text.len);

            json_object_set_new(top, json_string_value(key), logprob_of(list[i].top[j].logprob));
            json_decref(key);
        }
        json_array_append_new(tops, top);
        json_array_append_new(offsets, json_integer((json_int_t)list[i].text_offset));
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "tokens", tokens, "token_logprobs", values,
                     "top_logprobs", tops, "text_offset", offsets);
}

json_t *reply_logprobs(const struct reply *r, const struct token_logprob *list, size_t n)
{
    if (!r->opt.logprobs)
        return NULL;
    return r->kind == REQUEST_CHAT ? chat_logprobs(list, n) : completion_logprobs(list, n);
}

/* Appends the arrays of more to those of *to; takes more. */
static void extend_logprobs(json_t **to, json_t *take_more)
{
    const char *key;
    json_t *list;

    if (!take_more)
        return;
    if (!*to) {
        *to = take_more;
        return;
    }
    json_object_foreach(take_more, key, list)
    {
        if (json_is_array(list))
            json_array_extend(json_object_get(*to, key), list);
    }
    json_decref(take_more);
}

/* -- whole answers --------------------------------------------------------------------------------- */

static void end_call(struct choice *c)
{
    size_t n = json_array_size(c->tool_calls);
    json_t *function = json_object_get(json_array_get(c->tool_calls, n ? n - 1 : 0), "function");

    if (function)
        json_object_set_new(function, "arguments",
                            json_text(str_text(&c->arguments), c->arguments.len));
    str_truncate(&c->arguments, 0);
}

static void collect_call(struct choice *c, const struct event *ev)
{
    if (!c->tool_calls)
        c->tool_calls = json_array();
    if (ev->tool_name) {
        end_call(c);
        json_array_append_new(c->tool_calls,
                              json_pack("{s:s, s:s, s:{s:s, s:s}}", "id",
                                        ev->tool_id ? ev->tool_id : "", "type", "function",
                                        "function", "name", ev->tool_name, "arguments", ""));
    }
    str_add(&c->arguments, ev->text.p, ev->text.len);
}

static json_t *chat_choice(struct choice *c, unsigned index)
{
    json_t *message = json_object();
    json_t *o = json_object();

    end_call(c);
    json_object_set_new(message, "role", json_string("assistant"));
    json_object_set_new(message, "content",
                        c->tool_calls && c->content.len == 0
                            ? json_null()
                            : json_text(str_text(&c->content), c->content.len));
    json_object_set_new(message, "refusal", json_null());
    if (c->reasoning.len)
        json_object_set_new(message, "reasoning_content",
                            json_text(str_text(&c->reasoning), c->reasoning.len));
    if (c->tool_calls)
        json_object_set(message, "tool_calls", c->tool_calls);
    json_object_set_new(o, "index", json_integer(index));
    json_object_set_new(o, "message", message);
    json_object_set_new(o, "logprobs", c->logprobs ? json_incref(c->logprobs) : json_null());
    json_object_set_new(o, "finish_reason", json_string(finish_name(c->finish)));
    return o;
}

static json_t *completion_choice(struct choice *c, unsigned index)
{
    json_t *o = json_object();

    json_object_set_new(o, "text", json_text(str_text(&c->content), c->content.len));
    json_object_set_new(o, "index", json_integer(index));
    json_object_set_new(o, "logprobs", c->logprobs ? json_incref(c->logprobs) : json_null());
    json_object_set_new(o, "finish_reason", json_string(finish_name(c->finish)));
    return o;
}

static void write_whole(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *o = reply_head(r, r->kind == REQUEST_CHAT ? "chat.completion" : "text_completion");
    json_t *choices = json_array();

    for (unsigned i = 0; i < r->n_choices; i++)
        json_array_append_new(choices, r->kind == REQUEST_CHAT
                                           ? chat_choice(&r->choices[i], i)
                                           : completion_choice(&r->choices[i], i));
    json_object_set_new(o, "choices", choices);
    json_object_set_new(o, "usage", reply_usage(&ev->usage));
    json_object_set_new(o, "timings", reply_timings(&ev->timings));
    if (ev->sampling)
        json_object_set_new(o, "sampling", reply_sampling(ev->sampling));
    json_dump_to(o, out);
    json_decref(o);
}

static void collect(struct reply *r, const struct event *ev, struct str *out)
{
    struct choice *c = &r->choices[ev->choice < r->n_choices ? ev->choice : 0];

    switch (ev->kind) {
    case EVENT_TEXT:
    case EVENT_REASONING:
        str_add(ev->kind == EVENT_TEXT ? &c->content : &c->reasoning, ev->text.p, ev->text.len);
        extend_logprobs(&c->logprobs, reply_logprobs(r, ev->logprobs, ev->n_logprobs));
        break;
    case EVENT_TOOL_CALL: collect_call(c, ev); break;
    case EVENT_CHOICE_DONE: c->finish = ev->finish; break;
    case EVENT_DONE: write_whole(r, ev, out); break;
    case EVENT_FAILED: openai_error(ev->error, out); break;
    default: break;
    }
}

void reply_event(struct reply *r, const struct event *ev, struct str *out)
{
    if (ev->model && !*r->model)
        snprintf(r->model, sizeof r->model, "%s", ev->model);
    if (r->kind == REQUEST_EMBEDDING)
        embedding_event(r, ev, out);
    else if (r->opt.stream)
        stream_event(r, ev, out);
    else
        collect(r, ev, out);
}
