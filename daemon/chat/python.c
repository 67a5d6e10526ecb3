/* Python's literals as JSON; see python.h. */
#include "daemon/chat/python.h"

#include <string.h>

#include "common/json.h"
#include "common/utf8.h"

#define MAX_DEEP 64

static void skip_space(struct python_reader *r)
{
    while (r->at < r->text.len && strchr(" \t\r\n", r->text.p[r->at]) && r->text.p[r->at])
        r->at++;
}

bool python_accept(struct python_reader *r, char c)
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

static struct view read_word(struct python_reader *r)
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
static json_t *read_text(struct python_reader *r, char quote)
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

static json_t *read_list(struct python_reader *r, char end)
{
    json_t *list = json_array();

    while (!python_accept(r, end)) {
        json_t *item = NULL;

        if (json_array_size(list) == 0 || python_accept(r, ','))
            item = python_accept(r, end) ? list : python_value(r);
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

static json_t *read_dict(struct python_reader *r)
{
    json_t *dict = json_object();

    while (!python_accept(r, '}')) {
        json_t *key = NULL, *value = NULL;

        if (json_object_size(dict) == 0 || python_accept(r, ','))
            key = python_value(r);
        if (json_is_string(key) && python_accept(r, ':'))
            value = python_value(r);
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
static json_t *read_plain(struct python_reader *r)
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

json_t *python_value(struct python_reader *r)
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

json_t *python_call(struct python_reader *r, struct view *ret_name)
{
    json_t *arguments = json_object();

    *ret_name = read_word(r);
    if (!ret_name->len || !python_accept(r, '('))
        goto bad;
    while (!python_accept(r, ')')) {
        struct view key = {0};
        json_t *value = NULL;

        if (json_object_size(arguments) == 0 || python_accept(r, ','))
            key = read_word(r);
        if (key.len && python_accept(r, '='))
            value = python_value(r);
        if (!value)
            goto bad;
        json_object_setn_new(arguments, key.p, key.len, value);
    }
    return arguments;
bad:
    json_decref(arguments);
    return NULL;
}

json_t *python_literal(struct view text)
{
    struct python_reader r = {.text = text};
    json_t *value;

    if (!utf8_valid(text.p, text.len))
        return NULL;
    value = python_value(&r);
    skip_space(&r);
    if (r.at == text.len)
        return value;
    json_decref(value);
    return NULL;
}
