/*
 * Gemma 4: <|tool_call>call:NAME{key:<|"|>text<|"|>,n:1,list:[true]}<tool_call|>
 *
 * Nearly JSON: keys stand bare (or quoted like texts) and <|"|> stands for the
 * quote.  It is turned into JSON piece by piece.
 */
#include <string.h>

#include "common/json.h"
#include "daemon/chat/dialect.h"

#define QUOTE "<|\"|>"
#define CLOSE "<tool_call|>"

static const char *const opens[] = {"<|tool_call>call:", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|tool_call>call:");
}

/* split_name() holds the brackets that are open; its last byte is the innermost. */
enum { NAME, KEY, VALUE, TEXT_KEY, TEXT_VALUE, AFTER };

static void give_string(struct chat_split *s, struct view text, const char *after)
{
    json_t *string = json_text(text.p, text.len);
    struct str out = {0};

    json_dump_to(string, &out);
    str_adds(&out, after);
    split_arguments(s, view_of_str(&out));
    str_clear(&out);
    json_decref(string);
}

static bool step_name(struct chat_split *s)
{
    static const char *const brace[] = {"{", NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, brace, &which, &safe);

    if (at < 0)
        return false;
    split_begin_call(s, view_sub(split_held(s), 0, (size_t)at));
    split_consume(s, (size_t)at + 1);
    split_arguments(s, VIEW("{"));
    str_truncate(split_name(s), 0);
    str_addc(split_name(s), '{');
    split_set_phase(s, KEY);
    return true;
}

/* Up to the closing quote. */
static bool step_text(struct chat_split *s, bool is_key)
{
    static const char *const quote[] = {QUOTE, NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, quote, &which, &safe);

    if (at < 0)
        return false;
    give_string(s, view_sub(split_held(s), 0, (size_t)at), "");
    split_consume(s, (size_t)at + strlen(QUOTE));
    split_set_phase(s, is_key ? KEY : AFTER);
    return true;
}

/* Closes the innermost bracket with c; the last one ends the arguments. */
static enum call_step close_bracket(struct chat_split *s, char c)
{
    struct str *open = split_name(s);

    if (!open->len || open->p[open->len - 1] != (c == '}' ? '{' : '['))
        return CALL_BAD;
    split_consume(s, 1);
    split_arguments(s, (struct view){&c, 1});
    str_truncate(open, open->len - 1);
    split_set_phase(s, AFTER);
    return open->len ? CALL_MORE : CALL_DONE;
}

/* A key, after its text or before; ":" ends it. */
static enum call_step step_key(struct chat_split *s, bool at_end, bool *ret_moved)
{
    static const char *const colon[] = {":", NULL};
    size_t which, safe;
    ptrdiff_t at;
    struct view held;
    int quoted;

    split_skip_space(s);
    held = split_held(s);
    if (!held.len)
        return CALL_MORE;
    *ret_moved = true;
    if (held.p[0] == '}')
        return close_bracket(s, '}');
    if (held.p[0] == ':') {
        split_consume(s, 1);
        split_arguments(s, VIEW(": "));
        split_set_phase(s, VALUE);
        return CALL_MORE;
    }
    quoted = split_accept(s, QUOTE, at_end);
    if (quoted > 0) {
        split_set_phase(s, TEXT_KEY);
        return CALL_MORE;
    }
    at = split_find(s, colon, &which, &safe);
    *ret_moved = quoted < 0 && at >= 0;
    if (*ret_moved) {
        give_string(s, view_sub(held, 0, (size_t)at), ": ");
        split_consume(s, (size_t)at + 1);
        split_set_phase(s, VALUE);
    }
    return CALL_MORE;
}

/* A number or a word, up to what ends it; what is no JSON becomes a string. */
static bool step_word(struct chat_split *s)
{
    static const char *const ends[] = {",", "}", "]", NULL};
    size_t which, safe;
    ptrdiff_t at = split_find(s, ends, &which, &safe);
    struct view word;
    json_t *value;

    if (at < 0)
        return false;
    word = view_sub(split_held(s), 0, (size_t)at);
    value = json_loadb(word.p, word.len, JSON_DECODE_ANY, NULL);
    if (value)
        split_arguments(s, word);
    else if (view_is(word, "None")) /* as its template writes what is null */
        split_arguments(s, VIEW("null"));
    else
        give_string(s, word, "");
    json_decref(value);
    split_consume(s, (size_t)at);
    split_set_phase(s, AFTER);
    return true;
}

static enum call_step step_value(struct chat_split *s, bool at_end, bool *ret_moved)
{
    struct view held;
    int quoted;
    char c;

    split_skip_space(s);
    held = split_held(s);
    if (!held.len)
        return CALL_MORE;
    *ret_moved = true;
    c = held.p[0];
    if (c == '{' || c == '[') {
        split_consume(s, 1);
        split_arguments(s, (struct view){&c, 1});
        str_addc(split_name(s), c);
        split_set_phase(s, c == '{' ? KEY : VALUE);
        return CALL_MORE;
    }
    if (c == ']')
        return close_bracket(s, c);
    quoted = split_accept(s, QUOTE, at_end);
    if (quoted > 0)
        split_set_phase(s, TEXT_VALUE);
    else
        *ret_moved = quoted < 0 && step_word(s);
    return CALL_MORE;
}

static enum call_step step_after(struct chat_split *s, bool *ret_moved)
{
    const struct str *open = split_name(s);
    struct view held;

    split_skip_space(s);
    held = split_held(s);
    if (!held.len)
        return CALL_MORE;
    *ret_moved = true;
    if (held.p[0] == '}' || held.p[0] == ']')
        return close_bracket(s, held.p[0]);
    if (held.p[0] != ',')
        return CALL_BAD;
    split_consume(s, 1);
    split_arguments(s, VIEW(", "));
    split_set_phase(s, open->p[open->len - 1] == '{' ? KEY : VALUE);
    return CALL_MORE;
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    (void)which;
    if (split_phase(s) == AFTER && !split_name(s)->len)
        return split_accept(s, CLOSE, at_end) == 0 ? CALL_MORE : CALL_DONE;
    for (;;) {
        enum call_step step = CALL_MORE;
        bool moved = false;

        switch (split_phase(s)) {
        case NAME: moved = step_name(s); break;
        case KEY: step = step_key(s, at_end, &moved); break;
        case VALUE: step = step_value(s, at_end, &moved); break;
        case TEXT_KEY: moved = step_text(s, true); break;
        case TEXT_VALUE: moved = step_text(s, false); break;
        default: step = step_after(s, &moved); break;
        }
        if (step == CALL_DONE)
            return split_accept(s, CLOSE, at_end) == 0 ? CALL_MORE : CALL_DONE;
        if (step == CALL_BAD || !moved)
            return step;
    }
}

const struct chat_dialect chat_dialect_gemma4 = {
    .name = "gemma4",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
