/*
 * Generated text to events: reasoning at the start, calls at their markers,
 * everything else content.  See chat.h, dialect.h.
 */
#include "daemon/chat/split.h"

#include <stdlib.h>
#include <string.h>

#include "common/alloc.h"
#include "daemon/chat/chat_priv.h"

/* Bytes of a message's header: more is text in which no message begins. */
#define MAX_HEADER 192

static const struct chat_think thinks[] = {
    {.open = "<think>", .close = "</think>"},
    {.open = "[THINK]", .close = "[/THINK]", .special = true},
    {.open = "<seed:think>", .close = "</seed:think>"},
    {.open = "<|channel>thought\n", .close = "<channel|>", .special = true},
    {.open = "<|START_THINKING|>", .close = "<|END_THINKING|>", .special = true},
    {.open = "◁think▷", .close = "◁/think▷"},
    {.open = "<|inner_prefix|>", .close = "<|inner_suffix|>", .special = true},
    {.open = "<think:opensource>", .close = "</think:opensource>", .mark = "'<think{}>'"},
    {.open = "<|open|>think<|sep|>", .close = "<|close|>think<|sep|>", .mark = "<|end_of_msg|>"},
    {.open = "<mm:think>", .close = "</mm:think>"},
    {.open = "Here are my reasoning steps:\n", .close = "[BEGIN FINAL RESPONSE]"},
};

const struct chat_think *split_think_of(struct view template_text)
{
    for (size_t i = 0; i < ARRAY_LEN(thinks); i++)
        if (thinks[i].mark ? view_has(template_text, thinks[i].mark)
                           : view_has(template_text, thinks[i].open) ||
                                 view_has(template_text, thinks[i].close))
            return &thinks[i];
    return NULL;
}

bool split_marks(const char *const *list, struct view text)
{
    for (; list && *list; list++)
        if (view_find(view_of(*list), text, 0) >= 0)
            return true;
    return false;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* -- consuming ----------------------------------------------------------- */

struct view split_held(const struct chat_split *s)
{
    return view_sub(view_of_str(&s->held), s->at, s->held.len - s->at);
}

void split_consume(struct chat_split *s, size_t n)
{
    if (s->mode == SPLIT_CALL && !s->in_call && n)
        str_add(&s->raw, s->held.p + s->at, n);
    s->at += n;
}

void split_skip_space(struct chat_split *s)
{
    struct view held = split_held(s);
    size_t n = 0;

    while (n < held.len && is_space(held.p[n]))
        n++;
    split_consume(s, n);
}

int split_accept(struct chat_split *s, const char *marker, bool at_end)
{
    struct view held = split_held(s);
    struct view want = view_of(marker);

    if (view_starts(held, want)) {
        split_consume(s, want.len);
        return 1;
    }
    return !at_end && view_starts(want, held) ? 0 : -1;
}

enum call_step split_close(struct chat_split *s, const char *marker, bool at_end)
{
    split_skip_space(s);
    return split_accept(s, marker, at_end) == 0 ? CALL_MORE : CALL_DONE;
}

/* How many bytes at the end of held are the beginning of marker. */
static size_t partial(struct view held, struct view marker)
{
    size_t n = MIN(held.len, marker.len - 1);

    while (n > 0 && memcmp(held.p + held.len - n, marker.p, n) != 0)
        n--;
    return n;
}

ptrdiff_t split_find(const struct chat_split *s, const char *const *markers, size_t *ret_which,
                     size_t *ret_safe)
{
    struct view held = split_held(s);
    ptrdiff_t first = -1;
    size_t back = 0;

    for (size_t i = 0; markers[i]; i++) {
        struct view marker = view_of(markers[i]);
        ptrdiff_t at = view_find(held, marker, 0);

        back = MAX(back, partial(held, marker));
        if (at >= 0 && (first < 0 || at < first)) {
            first = at;
            *ret_which = i;
        }
    }
    *ret_safe = first < 0 ? held.len - back : (size_t)first;
    return first;
}

int split_begins(const struct chat_split *s, const char *const *markers, bool at_end)
{
    struct view held = split_held(s);

    if (held.len == 0)
        return 0;
    for (; *markers; markers++) {
        struct view marker = view_of(*markers);

        if (view_starts(held, marker))
            return 1;
        if (!at_end && view_starts(marker, held))
            return 0;
    }
    return -1;
}

int split_header(struct chat_split *s, const char *marker, bool at_end, struct view *ret_header)
{
    const char *const markers[] = {marker, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, markers, &which, &safe);
    struct view held = split_held(s);

    if (at > MAX_HEADER || (at < 0 && held.len > MAX_HEADER + strlen(marker))) {
        /* Text without a message; its own marker would be found again. */
        split_content(s, view_sub(held, 0, 1));
        split_consume(s, 1);
        return -1;
    }
    if (at < 0) {
        if (at_end)
            split_consume(s, held.len);
        return 0;
    }
    *ret_header = view_sub(held, 0, (size_t)at);
    split_consume(s, (size_t)at + strlen(marker));
    return 1;
}

int split_phase(const struct chat_split *s)
{
    return s->phase;
}

void split_set_phase(struct chat_split *s, int phase)
{
    s->phase = phase;
}

int split_part(const struct chat_split *s)
{
    return s->part;
}

void split_set_part(struct chat_split *s, int part)
{
    s->part = part;
}

struct str *split_name(struct chat_split *s)
{
    return &s->name;
}

const json_t *split_tools(const struct chat_split *s)
{
    return s->tools;
}

/* -- events -------------------------------------------------------------- */

static void emit(struct chat_split *s, enum chat_event_kind kind, struct view text,
                 const char *name)
{
    struct chat_event e = {.kind = kind, .text = text, .name = name};

    e.call = kind <= CHAT_REASONING ? 0 : s->n_calls - 1;
    s->sink(s->arg, &e);
}

/* Text without the white space at its end, which waits in s->space for more. */
static void emit_but_space(struct chat_split *s, enum chat_event_kind kind, struct view text)
{
    size_t n = text.len;
    struct str before = s->space;

    while (n > 0 && is_space(text.p[n - 1]))
        n--;
    if (n > 0) {
        s->space = (struct str){0};
        if (before.len)
            emit(s, kind, view_of_str(&before), NULL);
        str_clear(&before);
        emit(s, kind, view_sub(text, 0, n), NULL);
    }
    str_add(&s->space, text.p + n, text.len - n);
}

void split_content(struct chat_split *s, struct view text)
{
    size_t skip = 0;

    while (s->drop_space && skip < text.len && is_space(text.p[skip]))
        skip++;
    text = view_sub(text, skip, text.len - skip);
    if (text.len == 0)
        return;
    s->drop_space = false;
    /* Where no call can follow, nothing has to wait. */
    if (s->tools)
        emit_but_space(s, CHAT_CONTENT, text);
    else
        emit(s, CHAT_CONTENT, text, NULL);
}

void split_reasoning(struct chat_split *s, struct view text)
{
    size_t skip = 0;

    if (!s->split_reasoning) {
        split_content(s, text);
        return;
    }
    while (!s->reasoning_some && skip < text.len && is_space(text.p[skip]))
        skip++;
    text = view_sub(text, skip, text.len - skip);
    if (text.len == 0)
        return;
    s->reasoning_some = true;
    emit_but_space(s, CHAT_REASONING, text);
}

void split_end_reasoning(struct chat_split *s)
{
    if (s->split_reasoning)
        str_truncate(&s->space, 0);
    s->reasoning_some = false;
    s->drop_space = true;
}

void split_begin_call(struct chat_split *s, struct view name)
{
    char *copy = view_dup(name);

    str_truncate(&s->space, 0);
    str_truncate(&s->raw, 0);
    s->n_calls++;
    s->in_call = true;
    emit(s, CHAT_CALL, (struct view){0}, copy);
    free(copy);
}

void split_arguments(struct chat_split *s, struct view text)
{
    if (text.len)
        emit(s, CHAT_ARGUMENTS, text, NULL);
}

void split_end_call(struct chat_split *s)
{
    if (!s->in_call)
        return;
    s->in_call = false;
    s->drop_space = true;
    emit(s, CHAT_CALL_END, (struct view){0}, NULL);
}

/* -- the four modes ------------------------------------------------------ */

void split_again(struct chat_split *s)
{
    s->phase = 0;
    str_truncate(&s->name, 0);
    str_truncate(&s->key, 0);
    str_truncate(&s->raw, 0);
    s->has_arguments = false;
    call_json_reset(&s->json);
}

static void enter_call(struct chat_split *s, size_t which, const char *marker)
{
    s->mode = SPLIT_CALL;
    s->which = which;
    s->bare = !marker;
    s->calls_before = s->n_calls;
    split_again(s);
    if (marker)
        split_consume(s, strlen(marker));
}

/* White space before the first marker is content if no marker follows. */
static bool run_start(struct chat_split *s, bool at_end)
{
    struct view held = split_held(s);
    size_t space = 0;
    struct view rest;

    while (space < held.len && is_space(held.p[space]))
        space++;
    rest = view_sub(held, space, held.len - space);
    if (rest.len == 0 && !at_end)
        return false;
    if (s->think && s->split_reasoning) {
        struct view open = view_of(s->think->open), close = view_of(s->think->close);

        if (view_starts(rest, open)) {
            split_consume(s, space + open.len);
            s->mode = SPLIT_REASONING;
            return true;
        }
        /* Nothing was thought: some begin so where the prompt has closed the reasoning already. */
        if (view_starts(rest, close)) {
            split_consume(s, space + close.len);
            split_end_reasoning(s);
            s->mode = SPLIT_TEXT;
            return true;
        }
        if (!at_end && (view_starts(open, rest) || view_starts(close, rest)))
            return false;
    }
    s->mode = SPLIT_TEXT;
    if (s->dialect->bare && s->tools && rest.len && rest.p[0] == '{') {
        size_t n_opens = 0;

        while (s->dialect->opens && s->dialect->opens[n_opens])
            n_opens++;
        str_add(&s->space, held.p, space);
        split_consume(s, space);
        enter_call(s, n_opens, NULL);
    }
    return true;
}

static bool run_reasoning(struct chat_split *s, bool at_end)
{
    const char *const markers[] = {s->think->close, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, markers, &which, &safe);
    struct view held = split_held(s);
    size_t n = at < 0 && at_end ? held.len : safe;

    split_reasoning(s, view_sub(held, 0, n));
    split_consume(s, n);
    if (at < 0)
        return false;
    split_consume(s, strlen(s->think->close));
    split_end_reasoning(s);
    s->mode = SPLIT_TEXT;
    return true;
}

/* Content up to the next marker, which is dropped or begins a call. */
static bool run_text(struct chat_split *s, bool at_end)
{
    static const char *const none[] = {NULL};
    const char *const *opens = s->tools && s->dialect->opens ? s->dialect->opens : none;
    const char *const *drops = s->dialect->drops ? s->dialect->drops : none;
    size_t which, drop, safe, safe_drop;
    ptrdiff_t at = split_find(s, opens, &which, &safe);
    ptrdiff_t at_drop = split_find(s, drops, &drop, &safe_drop);
    struct view held = split_held(s);
    size_t n = MIN(safe, safe_drop);

    /* At the end nothing is the beginning of a marker any more. */
    if (at_end)
        n = MIN(at < 0 ? held.len : (size_t)at, at_drop < 0 ? held.len : (size_t)at_drop);
    split_content(s, view_sub(held, 0, n));
    split_consume(s, n);
    if (at >= 0 && (size_t)at == n) {
        enter_call(s, which, opens[which]);
        return true;
    }
    if (at_drop >= 0 && (size_t)at_drop == n) {
        split_consume(s, strlen(drops[drop]));
        return true;
    }
    return false;
}

/* No call after all: what was consumed since the marker is content. */
static void back_to_content(struct chat_split *s)
{
    struct str raw = s->raw;

    s->raw = (struct str){0};
    s->mode = SPLIT_TEXT;
    if (raw.len)
        split_content(s, view_of_str(&raw));
    str_clear(&raw);
}

static bool run_call(struct chat_split *s, bool at_end)
{
    enum call_step step = s->dialect->call(s, s->which, at_end);

    if (step == CALL_MORE && !at_end)
        return false;
    if (step != CALL_DONE && !s->in_call &&
        (s->n_calls == s->calls_before || call_json_is_open(&s->json))) {
        back_to_content(s);
    } else {
        split_end_call(s);
        s->mode = SPLIT_TEXT;
    }
    return true;
}

static bool run(struct chat_split *s, bool at_end)
{
    if (s->dialect->step)
        return s->dialect->step(s, at_end);
    switch (s->mode) {
    case SPLIT_START: return run_start(s, at_end);
    case SPLIT_REASONING: return run_reasoning(s, at_end);
    case SPLIT_CALL: return run_call(s, at_end);
    default: return run_text(s, at_end);
    }
}

static void run_all(struct chat_split *s, bool at_end)
{
    while (run(s, at_end))
        ;
    str_remove_front(&s->held, s->at);
    s->at = 0;
}

/* -- public -------------------------------------------------------------- */

/* Whether the prompt ends inside of reasoning: its last marker is an open one, and nothing but space follows. */
static bool prompt_opens_reasoning(const struct chat_think *think, struct view prompt)
{
    struct view open = view_of(think->open);

    while (prompt.len && is_space(prompt.p[prompt.len - 1]))
        prompt.len--;
    while (open.len && is_space(open.p[open.len - 1]))
        open.len--;
    return prompt.len >= open.len &&
           memcmp(prompt.p + prompt.len - open.len, open.p, open.len) == 0;
}

struct chat_split *chat_split_create(const struct chat_template *t,
                                     const struct chat_split_options *options, chat_event_fn *sink,
                                     void *arg)
{
    struct chat_split *s = XNEW(struct chat_split);

    s->dialect = t->dialect;
    s->think = t->think;
    s->tools = json_array_size(options->tools) ? options->tools : NULL;
    s->split_reasoning = options->reasoning;
    s->sink = sink;
    s->arg = arg;
    if (s->think && s->split_reasoning && prompt_opens_reasoning(s->think, options->prompt))
        s->mode = SPLIT_REASONING;
    return s;
}

void chat_split_feed(struct chat_split *s, struct view piece)
{
    str_add(&s->held, piece.p, piece.len);
    run_all(s, false);
}

void chat_split_finish(struct chat_split *s)
{
    bool reasoning = s->mode == SPLIT_REASONING;

    run_all(s, true);
    split_end_call(s);
    if (s->space.len && !s->drop_space && !reasoning)
        emit(s, CHAT_CONTENT, view_of_str(&s->space), NULL);
    str_truncate(&s->space, 0);
}

unsigned chat_split_n_calls(const struct chat_split *s)
{
    return s->n_calls;
}

void chat_split_destroy(struct chat_split *s)
{
    if (!s)
        return;
    str_clear(&s->held);
    str_clear(&s->space);
    str_clear(&s->raw);
    str_clear(&s->name);
    str_clear(&s->key);
    call_json_clear(&s->json);
    free(s);
}

void chat_call_id(uint64_t seed, unsigned call, char ret_id[CHAT_CALL_ID_LEN + 1])
{
    static const char set[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    uint64_t x = seed + 0x9E3779B97F4A7C15u * ((uint64_t)call + 1);

    /* splitmix64: neighbours look unrelated, and no two calls of an answer share an id by design. */
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
    for (int i = 0; i < CHAT_CALL_ID_LEN; i++) {
        ret_id[i] = set[x % 62];
        x /= 62;
    }
    ret_id[CHAT_CALL_ID_LEN] = '\0';
}
