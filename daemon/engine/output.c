/* Ids to events; see output.h. */
#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/engine/engine_priv.h"
#include "daemon/engine/output.h"

void output_init(struct output *o, struct engine *e, struct task *t,
                 const struct tokenizer *tokenizer, struct view prompt, uint64_t seed)
{
    const struct request *req = t->req;

    *o = (struct output){.e = e, .task = t, .tokenizer = tokenizer, .prompt = prompt, .seed = seed};
    stop_init(&o->stops);
    for (unsigned i = 0; i < req->n_stops; i++)
        stop_add(&o->stops, (struct view){req->stop[i].text, req->stop[i].len});
}

void output_clear(struct output *o)
{
    if (!o->e)
        return;
    chat_split_destroy(o->split);
    detok_clear(&o->detok);
    stop_clear(&o->stops);
    free(o->waiting);
    free(o->waiting_ends);
    str_clear(&o->bytes);
    str_clear(&o->piece);
    str_clear(&o->passed);
    o->e = NULL;
}

/* -- log probabilities ---------------------------------------------------------------- */

/* Without a vocabulary a token is told by its number: no two may look alike. */
static struct view piece_text(struct output *o, int32_t id)
{
    size_t at = o->bytes.len;

    if (o->tokenizer)
        tokenizer_piece(o->tokenizer, id, true, &o->bytes);
    else
        str_addf(&o->bytes, "token_id:%d", id);
    return (struct view){(const char *)(uintptr_t)at, o->bytes.len - at};
}

/*
 * What a face keeps of an answer that is sent whole, the most of it when it writes the
 * JSON: an entry of a token (an object, an array, numbers), and of its text the copy,
 * the JSON twice, and a number for each byte.
 */
#define ENTRY_BYTES         ((size_t)1024)
#define ENTRY_BYTES_OF_TEXT ((size_t)96)
#define ANSWER_BYTES        ((size_t)16) /* of a byte of text: copies that grow, and escapes */

static void count_waiting(struct output *o, const struct token_logprob *t, size_t text)
{
    size_t entries = 1 + t->n_top;

    if (o->n_waiting > o->most_waiting) {
        o->kept_bytes += 2 * (sizeof *t + sizeof *o->waiting_ends);
        o->most_waiting = o->n_waiting;
    }
    if (o->bytes.len > o->most_bytes) {
        o->kept_bytes += 2 * (o->bytes.len - o->most_bytes);
        o->most_bytes = o->bytes.len;
    }
    if (o->task->req->answer_whole)
        o->kept_bytes += entries * ENTRY_BYTES + text * ENTRY_BYTES_OF_TEXT;
}

static void add_waiting(struct output *o, const struct token_logprob *lp, size_t from, size_t to)
{
    struct token_logprob *t;
    size_t before;

    if (o->n_waiting == 0)
        str_truncate(&o->bytes, 0);
    ARRAY_GROW(o->waiting, o->n_waiting + 1, o->cap_waiting);
    ARRAY_GROW(o->waiting_ends, o->n_waiting + 1, o->cap_ends);
    t = &o->waiting[o->n_waiting];
    before = o->bytes.len;
    *t = *lp;
    t->text_offset = from;
    t->text = piece_text(o, lp->id);
    for (unsigned i = 0; i < t->n_top; i++)
        t->top[i].text = piece_text(o, t->top[i].id);
    o->waiting_ends[o->n_waiting++] = to;
    count_waiting(o, t, o->bytes.len - before);
}

static struct view settled(const struct output *o, struct view v)
{
    return (struct view){str_text(&o->bytes) + (uintptr_t)v.p, v.len};
}

/* A face writes an event down at once: more tokens go with events of their own. */
#define MOST_ATTACHED 16

/*
 * Puts the first of those whose text has been sent into the event; forget_sent drops them after it
 * was posted.  True: there are more.
 */
static bool attach_sent(struct output *o, struct event *ev)
{
    size_t n = 0;

    while (n < MIN(o->n_waiting, MOST_ATTACHED) && o->waiting_ends[n] <= o->sent_bytes)
        n++;
    if (n == 0)
        return false;
    ev->logprobs = xmemdup(o->waiting, n * sizeof *o->waiting);
    ev->n_logprobs = n;
    for (size_t i = 0; i < n; i++) {
        struct token_logprob *t = (struct token_logprob *)(uintptr_t)&ev->logprobs[i];

        t->text = settled(o, t->text);
        for (unsigned k = 0; k < t->n_top; k++)
            t->top[k].text = settled(o, t->top[k].text);
    }
    return n < o->n_waiting && o->waiting_ends[n] <= o->sent_bytes;
}

static void forget_sent(struct output *o, size_t n)
{
    o->n_waiting -= n;
    memmove(o->waiting, o->waiting + n, o->n_waiting * sizeof *o->waiting);
    memmove(o->waiting_ends, o->waiting_ends + n, o->n_waiting * sizeof *o->waiting_ends);
}

/* -- text ---------------------------------------------------------------------------------- */

static void send(struct output *o, enum event_kind kind, struct view text)
{
    bool more = true;

    while (more) {
        struct event ev = {.kind = kind, .choice = o->choice, .text = text};

        more = attach_sent(o, &ev);
        if (text.len == 0 && ev.n_logprobs == 0)
            return;
        events_post(o->e, o->task, &ev);
        if (ev.n_logprobs) {
            forget_sent(o, ev.n_logprobs);
            free((void *)(uintptr_t)ev.logprobs);
        }
        text.len = 0;
    }
}

/* The parts that the splitter makes of an answer. */
static void on_part(void *arg, const struct chat_event *part)
{
    struct output *o = arg;
    struct event ev = {.kind = EVENT_TOOL_CALL, .choice = o->choice, .call = part->call};
    char id[CHAT_CALL_ID_LEN + 1];

    switch (part->kind) {
    case CHAT_CONTENT: send(o, EVENT_TEXT, part->text); break;
    case CHAT_REASONING:
        o->reasoned = true;
        send(o, EVENT_REASONING, part->text);
        break;
    case CHAT_CALL:
        chat_call_id(o->seed + o->choice, part->call, id);
        ev.tool_name = part->name;
        ev.tool_id = id;
        o->n_calls++;
        events_post(o->e, o->task, &ev);
        break;
    case CHAT_ARGUMENTS:
        ev.text = part->text;
        events_post(o->e, o->task, &ev);
        break;
    case CHAT_CALL_END: break;
    }
}

static void begin_split(struct output *o)
{
    const struct request *req = o->task->req;
    struct chat_split_options so = {
        .reasoning = req->split_reasoning, .tools = req->tools, .prompt = o->prompt};

    chat_split_destroy(o->split);
    o->split = NULL;
    if (req->kind == REQUEST_CHAT)
        o->split = chat_split_create(o->task->work.slot->chat, &so, on_part, o);
}

static bool shows(const void *chat, struct view token)
{
    return chat_template_shows(chat, token);
}

void output_begin(struct output *o, unsigned choice)
{
    o->choice = choice;
    o->fed_bytes = o->sent_bytes = 0;
    o->n_waiting = 0;
    o->n_calls = 0;
    o->reasoning_tokens = 0;
    str_truncate(&o->bytes, 0);
    stop_reset(&o->stops);
    begin_split(o);
    detok_clear(&o->detok);
    if (o->tokenizer)
        detok_init(&o->detok, o->tokenizer);
    if (o->split) {
        o->detok.shows = shows;
        o->detok.shows_arg = o->task->work.slot->chat;
    }
}

/* Text that has passed the stop strings. */
static void pass(struct output *o, struct view text)
{
    o->sent_bytes += text.len;
    if (!o->split)
        send(o, EVENT_TEXT, text);
    else if (text.len)
        chat_split_feed(o->split, text);
    /* What the split has taken for a call, or holds, goes with no text: it must not gather. */
    if (o->n_waiting >= MOST_ATTACHED)
        send(o, EVENT_TEXT, (struct view){"", 0});
}

void output_echo(struct output *o, struct view prompt)
{
    struct event ev = {.kind = EVENT_TEXT, .choice = o->choice, .text = prompt};

    o->fed_bytes += prompt.len;
    o->sent_bytes += prompt.len;
    if (o->task->req->answer_whole)
        o->kept_bytes += ANSWER_BYTES * prompt.len;
    if (prompt.len)
        events_post(o->e, o->task, &ev);
}

/* Whole characters into the stop filter, and what comes out of it on. */
static bool feed(struct output *o)
{
    bool stopped;

    str_truncate(&o->passed, 0);
    o->fed_bytes += o->piece.len;
    if (o->task->req->answer_whole)
        o->kept_bytes += ANSWER_BYTES * o->piece.len;
    stopped = stop_feed(&o->stops, view_of_str(&o->piece), &o->passed);
    pass(o, view_of_str(&o->passed));
    return stopped;
}

bool output_token(struct output *o, int32_t id, const struct token_logprob *lp)
{
    /* Bytes of a character that is not whole yet are held, and belong to the text all the same. */
    size_t from = o->fed_bytes + o->detok.held.len;
    bool stopped;

    str_truncate(&o->piece, 0);
    if (o->tokenizer)
        detok_feed(&o->detok, id, &o->piece);
    if (lp)
        add_waiting(o, lp, from, o->fed_bytes + o->piece.len + o->detok.held.len);
    o->reasoned = false;
    stopped = feed(o);
    o->reasoning_tokens += o->reasoned;
    return stopped;
}

void output_end(struct output *o, enum finish finish)
{
    struct event ev = {.kind = EVENT_CHOICE_DONE, .choice = o->choice, .finish = finish};
    bool stopped = o->stops.matched >= 0;

    if (!stopped && o->tokenizer) {
        str_truncate(&o->piece, 0);
        detok_finish(&o->detok, &o->piece);
        stopped = feed(o);
    }
    if (!stopped) {
        str_truncate(&o->passed, 0);
        stop_finish(&o->stops, &o->passed);
        pass(o, view_of_str(&o->passed));
    }
    if (o->split)
        chat_split_finish(o->split);
    send(o, EVENT_TEXT, (struct view){"", 0}); /* log probabilities of tokens without text */
    if (o->n_calls && finish == FINISH_STOP)
        ev.finish = FINISH_TOOL_CALLS;
    if (stopped) {
        const struct request *req = o->task->req;

        ev.finish = FINISH_STOP;
        ev.stop_text = req->stop[o->stops.matched].text;
    }
    events_post(o->e, o->task, &ev);
}

/* -- sequence breakers ------------------------------------------------------------------------ */

static bool breaks(const struct sampling_options *opt, struct view text)
{
    for (unsigned i = 0; i < opt->n_dry_breakers; i++)
        if (view_find(text, view_of(opt->dry_breakers[i]), 0) >= 0)
            return true;
    return false;
}

void output_set_breakers(const struct output *o, struct sampler *s,
                         const struct sampling_options *opt)
{
    size_t n_vocab, n = 0;
    struct str text = {0};
    int32_t *ids;

    if (!o->tokenizer || opt->dry_multiplier == 0.0f || opt->n_dry_breakers == 0)
        return;
    n_vocab = tokenizer_n_vocab(o->tokenizer);
    ids = XNEW_ARRAY(int32_t, n_vocab);
    for (size_t id = 0; id < n_vocab; id++) {
        str_truncate(&text, 0);
        tokenizer_piece(o->tokenizer, (int32_t)id, true, &text);
        if (breaks(opt, view_of_str(&text)))
            ids[n++] = (int32_t)id;
    }
    sampler_set_dry_breakers(s, ids, n);
    str_clear(&text);
    free(ids);
}
