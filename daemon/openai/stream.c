/* Events as server-sent events, in OpenAI's order; see openai.h. */
#include <string.h>

#include "common/alloc.h"
#include "daemon/openai/reply_priv.h"

static void frame(struct str *out, json_t *take_object)
{
    str_adds(out, "data: ");
    json_dump_to(take_object, out);
    str_adds(out, "\n\n");
    json_decref(take_object);
}

static json_t *chunk(const struct reply *r)
{
    return reply_head(r, r->kind == REQUEST_CHAT ? "chat.completion.chunk" : "text_completion");
}

/* One chunk with one choice; delta is the chat's delta or the completion's text. */
static json_t *choice_chunk(const struct reply *r, unsigned index, json_t *take_delta,
                            json_t *take_logprobs, const char *finish)
{
    json_t *o = chunk(r);
    json_t *c = json_object();

    json_object_set_new(c, "index", json_integer(index));
    json_object_set_new(c, r->kind == REQUEST_CHAT ? "delta" : "text", take_delta);
    json_object_set_new(c, "logprobs", take_logprobs ? take_logprobs : json_null());
    json_object_set_new(c, "finish_reason", finish ? json_string(finish) : json_null());
    json_object_set_new(o, "choices", json_pack("[o]", c));
    if (r->opt.include_usage)
        json_object_set_new(o, "usage", json_null());
    return o;
}

/* The first chunk of a chat's choice carries the role. */
static void begin(struct reply *r, unsigned index, struct str *out)
{
    if (r->kind != REQUEST_CHAT || r->choices[index].begun)
        return;
    r->choices[index].begun = true;
    frame(out, choice_chunk(r, index, json_pack("{s:s, s:s}", "role", "assistant", "content", ""),
                            NULL, NULL));
}

static void text(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *piece = json_text(ev->text.p, ev->text.len);
    const char *key = ev->kind == EVENT_REASONING ? "reasoning_content" : "content";

    begin(r, ev->choice, out);
    if (r->kind == REQUEST_CHAT)
        piece = json_pack("{s:o}", key, piece);
    frame(out, choice_chunk(r, ev->choice, piece, reply_logprobs(r, ev->logprobs, ev->n_logprobs),
                            NULL));
}

static void tool_call(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *call = json_object(), *function = json_object();

    begin(r, ev->choice, out);
    json_object_set_new(call, "index", json_integer(ev->call));
    if (ev->tool_name) {
        json_object_set_new(call, "id", json_string(ev->tool_id ? ev->tool_id : ""));
        json_object_set_new(call, "type", json_string("function"));
        json_object_set_new(function, "name", json_string(ev->tool_name));
    }
    json_object_set_new(function, "arguments", json_text(ev->text.p, ev->text.len));
    json_object_set_new(call, "function", function);
    frame(out, choice_chunk(r, ev->choice, json_pack("{s:[o]}", "tool_calls", call), NULL, NULL));
}

static json_t *finish_chunk(struct reply *r, unsigned index)
{
    json_t *delta = r->kind == REQUEST_CHAT ? json_object() : json_string("");

    return choice_chunk(r, index, delta, NULL, finish_name(r->choices[index].finish));
}

static void progress(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *o = chunk(r);

    json_object_set_new(o, "choices", json_array());
    json_object_set_new(o, "progress",
                        json_pack("{s:s, s:I, s:I}", "step", request_step_name(ev->step), "done",
                                  (json_int_t)ev->progress, "total", (json_int_t)ev->total));
    frame(out, o);
}

/* The last choice's end, with the timings; the usage, if asked for, in a chunk of its own. */
static void done(struct reply *r, const struct event *ev, struct str *out)
{
    json_t *last = finish_chunk(r, r->n_choices - 1);
    json_t *o;

    json_object_set_new(last, "timings", reply_timings(&ev->timings));
    if (ev->sampling)
        json_object_set_new(last, "sampling", reply_sampling(ev->sampling));
    frame(out, last);
    if (r->opt.include_usage) {
        o = chunk(r);
        json_object_set_new(o, "choices", json_array());
        json_object_set_new(o, "usage", reply_usage(&ev->usage));
        frame(out, o);
    }
    str_adds(out, "data: [DONE]\n\n");
}

void stream_event(struct reply *r, const struct event *ev, struct str *out)
{
    switch (ev->kind) {
    case EVENT_TEXT:
    case EVENT_REASONING: text(r, ev, out); break;
    case EVENT_TOOL_CALL: tool_call(r, ev, out); break;
    case EVENT_PROGRESS: progress(r, ev, out); break;
    case EVENT_CHOICE_DONE:
        begin(r, ev->choice, out);
        r->choices[ev->choice].finish = ev->finish;
        if (ev->choice + 1 < r->n_choices)
            frame(out, finish_chunk(r, ev->choice));
        break;
    case EVENT_DONE: done(r, ev, out); break;
    case EVENT_FAILED:
        str_adds(out, "data: ");
        openai_error(ev->error, out);
        str_adds(out, "\n\n");
        break;
    default: break;
    }
}
