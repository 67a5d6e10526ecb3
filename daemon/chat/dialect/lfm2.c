/*
 * LFM2: <|tool_call_start|>[NAME(key='text', n=1), ...]<|tool_call_end|>: calls as Python writes them.
 *
 * They are read when the block is whole: before its end a text cannot be told
 * from the code around it.
 */
#include <string.h>

#include "common/json.h"
#include "common/utf8.h"
#include "daemon/chat/dialect.h"

#define CLOSE    "<|tool_call_end|>"
#define MAX_DEEP 64

static const char *const opens[] = {"<|tool_call_start|>", NULL};

static bool detect(struct view template_text)
{
    return view_has(template_text, "<|tool_call_start|>");
}

/* A place in the Python text; every reader leaves it as it was when it fails. */
struct reader {
    struct view text;
    size_t at;
    int deep;
};

static void skip_space(struct reader *r)
{
    while (r->at < r->text.len && strchr(" \t\r\n", r->text.p[r->at]) && r->text.p[r->at])
        r->at++;
}

static bool accept_char(struct reader *r, char c)
{
    skip_space(r);
    if (r->at >= r->text.len || r->text.p[r->at] != c)
        return false;
    r->at++;
    return true;
}

static bool is_word_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           strchr("_.+-", c);
}

static struct view read_word(struct reader *r)
{
    size_t from;

    skip_space(r);
    for (from = r->at; r->at < r->text.len && r->text.p[r->at] && is_word_char(r->text.p[r->at]);)
        r->at++;
    return view_sub(r->text, from, r->at - from);
}

static void add_escape(char c, struct str *out)
{
    switch (c) {
    case 'n': str_addc(out, '\n'); break;
    case 't': str_addc(out, '\t'); break;
    case 'r': str_addc(out, '\r'); break;
    case '\\':
    case '\'':
    case '"': str_addc(out, c); break;
    default: str_addc(out, '\\'); str_addc(out, c);
    }
}

/* A quoted text, after its quote. */
static json_t *read_text(struct reader *r, char quote)
{
    struct str out = {0};
    json_t *text = NULL;

    while (r->at < r->text.len && r->text.p[r->at] != quote) {
        char c = r->text.p[r->at++];

        if (c != '\\' || r->at == r->text.len)
            str_addc(&out, c);
        else
            add_escape(r->text.p[r->at++], &out);
    }
    if (r->at < r->text.len) {
        r->at++;
        text = json_text(str_text(&out), out.len);
    }
    str_clear(&out);
    return text;
}

static json_t *read_value(struct reader *r);

static json_t *read_list(struct reader *r, char end)
{
    json_t *list = json_array();

    while (!accept_char(r, end)) {
        json_t *item = NULL;

        if (json_array_size(list) == 0 || accept_char(r, ','))
            item = accept_char(r, end) ? list : read_value(r);
        if (item == list)
            return list;
        if (!item) {
            json_decref(list);
            return NULL;
        }
        json_array_append_new(list, item);
    }
    return list;
}

static json_t *read_dict(struct reader *r)
{
    json_t *dict = json_object();

    while (!accept_char(r, '}')) {
        json_t *key = NULL, *value = NULL;

        if (json_object_size(dict) == 0 || accept_char(r, ','))
            key = read_value(r);
        if (json_is_string(key) && accept_char(r, ':'))
            value = read_value(r);
        if (value)
            json_object_set_new(dict, json_string_value(key), value);
        json_decref(key);
        if (!value) {
            json_decref(dict);
            return NULL;
        }
    }
    return dict;
}

/* True, None, a number; any other word is no value. */
static json_t *read_plain(struct reader *r)
{
    struct view word = read_word(r);

    if (view_is(word, "True") || view_is(word, "true"))
        return json_true();
    if (view_is(word, "False") || view_is(word, "false"))
        return json_false();
    if (view_is(word, "None") || view_is(word, "null"))
        return json_null();
    return json_loadb(word.p, word.len, JSON_DECODE_ANY, NULL);
}

static json_t *read_value(struct reader *r)
{
    json_t *value;

    skip_space(r);
    if (r->at >= r->text.len || r->deep >= MAX_DEEP)
        return NULL;
    r->deep++;
    switch (r->text.p[r->at]) {
    case '\'':
    case '"': value = read_text(r, r->text.p[r->at++]); break;
    case '[':
        r->at++;
        value = read_list(r, ']');
        break;
    case '(':
        r->at++;
        value = read_list(r, ')');
        break;
    case '{':
        r->at++;
        value = read_dict(r);
        break;
    default: value = read_plain(r); break;
    }
    r->deep--;
    return value;
}

/* NAME(key=value, ...): the arguments as an object, or NULL. */
static json_t *read_call(struct reader *r, struct view *ret_name)
{
    json_t *arguments = json_object();

    *ret_name = read_word(r);
    if (!ret_name->len || !accept_char(r, '('))
        goto bad;
    while (!accept_char(r, ')')) {
        struct view key = {0};
        json_t *value = NULL;

        if (json_object_size(arguments) == 0 || accept_char(r, ','))
            key = read_word(r);
        if (key.len && accept_char(r, '='))
            value = read_value(r);
        if (!value)
            goto bad;
        json_object_setn_new(arguments, key.p, key.len, value);
    }
    return arguments;
bad:
    json_decref(arguments);
    return NULL;
}

static void give_call(struct chat_split *s, struct view name, const json_t *arguments)
{
    struct str text = {0};

    json_dump_to(arguments, &text);
    split_begin_call(s, name);
    split_arguments(s, view_of_str(&text));
    split_end_call(s);
    str_clear(&text);
}

/* All calls of a block: read twice, so that a wrong one leaves none behind. */
static bool read_block(struct chat_split *s, struct view text, bool give)
{
    struct reader r = {.text = text};
    bool more;

    if (!accept_char(&r, '['))
        return false;
    do {
        struct view name;
        json_t *arguments = read_call(&r, &name);

        if (!arguments)
            return false;
        if (give)
            give_call(s, name, arguments);
        json_decref(arguments);
        more = accept_char(&r, ',');
    } while (more);
    return accept_char(&r, ']');
}

static enum call_step call(struct chat_split *s, size_t which, bool at_end)
{
    static const char *const close[] = {CLOSE, NULL};
    size_t safe;
    ptrdiff_t at = split_find(s, close, &which, &safe);
    struct view held = split_held(s);
    struct view block = view_sub(held, 0, at < 0 ? held.len : (size_t)at);

    if (at < 0 && !at_end)
        return CALL_MORE;
    if (!utf8_valid(block.p, block.len) || !read_block(s, block, false))
        return CALL_BAD;
    read_block(s, block, true);
    split_consume(s, block.len + (at < 0 ? 0 : strlen(CLOSE)));
    return CALL_DONE;
}

const struct chat_dialect chat_dialect_lfm2 = {
    .name = "lfm2",
    .rank = 20,
    .detect = detect,
    .opens = opens,
    .special = true,
    .call = call,
};
